// Blind rotation by groups of secret bits and the key switch by products: every device gives the
// bits of ref, and ref's are those of the definition.
#include <cmath>

#include "backends/cpu/cpu_backend.h"
#include "device/torus/tuner.h"
#include "support/devices.h"
#include "support/torus_schoolbook.h"

namespace crenel::test {
namespace {

class TorusGroups : public DeviceTest {
 protected:
  void expect_same(const TorusPlan& plan, const RotationInput& in) const {
    SCOPED_TRACE(cat(describe(plan), ", batch ", in.batch));
    const TorusWorld candidate(device_, plan), reference(device::make_ref_device(), plan);
    ASSERT_EQ(first_difference(candidate.blind_rotate(in), reference.blind_rotate(in)), "");
  }
  void expect_same_by_every_shape(TorusPlan plan, u32 batch, Rng& rng) const {
    plan.log_switch_modulus = plan.log_n == 11 ? 21 : 16;
    const TorusWorld candidate(device_, plan), reference(device::make_ref_device(), plan);
    auto* const tuner = dynamic_cast<device::RotationTuner*>(candidate.kernels.get());
    auto in = rotation_input(plan, batch, 2, true, rng);
    in.outputs = batch == 1 ? 16 : 1;
    const auto key = candidate.load_key(in.key);
    const auto expected = reference.blind_rotate(in);
    const auto shapes = tuner != nullptr ? tuner->shapes() : std::vector<device::RotationShape>(1);
    for (u32 shape = 0; shape < shapes.size(); ++shape) {
      if (tuner != nullptr) tuner->use_shape(shape, 0);
      ASSERT_EQ(first_difference(candidate.blind_rotate(in, key), expected), "")
          << shapes[shape].name << ", " << describe(plan) << ", batch " << batch;
    }
  }
};
CRENEL_CANDIDATE_SUITE(TorusGroups);

TEST_P(TorusGroups, EveryGroupAndRing) {
  Rng rng = test_rng();
  for (u32 group = 1; group <= device::kMaxGroup; ++group)
    for (u32 log_n = 3; log_n <= 10; ++log_n) {
      const TorusPlan plan = group_plan(group, 3, 1 + log_n % 3, log_n, 17, 20);
      expect_same(plan, rotation_input(plan, 2, 2, true, rng));
      if (HasFatalFailure()) return;
    }
}

TEST_P(TorusGroups, Batches) {
  Rng rng = test_rng();
  for (const u32 group : {1u, 2u, 4u})
    for (const u32 batch : {1u, 2u, 3u, 8u, 9u, 33u}) {
      const TorusPlan plan = group_plan(group, 4, 3, 6, 17, 20);
      expect_same(plan, rotation_input(plan, batch, 3, true, rng));
      if (HasFatalFailure()) return;
    }
}

// The shapes of the sets, few steps of them: sums that are reduced before they are rounded too.
TEST_P(TorusGroups, Sets) {
  Rng rng = test_rng();
  for (const u32 group : {1u, 2u, 3u, 4u})
    for (TorusPlan plan :
         {group_plan(group, 2, 1, 11, 23, 26), group_plan(group, 2, 3, 9, 17, 20)}) {
      plan.log_switch_modulus = plan.log_n == 11 ? 21 : 16;
      for (const u32 batch : {1u, 5u}) {
        auto in = rotation_input(plan, batch, 2, true, rng);
        in.outputs = batch;
        if (batch == 5) in.outputs = 16;
        expect_same(plan, in);
        if (HasFatalFailure()) return;
      }
    }
}

// Every compiled way to run the sets, with batches that do not fill its blocks.
TEST_P(TorusGroups, EveryShape) {
  Rng rng = test_rng();
  for (const u32 group : {1u, 2u, 4u})
    for (const u32 batch : {1u, 7u}) {
      expect_same_by_every_shape(group_plan(group, 3, 1, 11, 23, 26), batch, rng);
      expect_same_by_every_shape(group_plan(group, 3, 3, 9, 17, 20), batch, rng);
      if (HasFatalFailure()) return;
    }
}

// Several messages a mask, each with a body and a table of its own.
TEST_P(TorusGroups, MessagesOfAMask) {
  Rng rng = test_rng();
  for (const bool differences : {false, true})
    for (u32 group = 1; group <= 4; ++group)
      for (const u32 slots : {1u, 2u, 5u, 16u}) {
        const u32 log_n = 3 + (group + slots) % 5;
        const TorusPlan plan =
            packed_plan(group_plan(group, 3, 1 + slots % 3, log_n, 17, 20), slots, differences);
        auto in = rotation_input(plan, 3, 4, true, rng);
        in.outputs = 1u << slots % 4;
        expect_same(plan, in);
        if (HasFatalFailure()) return;
      }
}

// Every compiled way to run bool128-packed, with batches that do not fill its blocks; shapes for
// other numbers of messages; and shapes of one message a mask whose polynomials are as many.
TEST_P(TorusGroups, EveryShapeOfSeveralMessages) {
  Rng rng = test_rng();
  const TorusPlan gates = group_plan(1, 3, 3, 9, 17, 20);
  for (const u32 batch : {1u, 7u})
    for (const u32 slots : {5u, 1u, 4u, 7u}) {
      expect_same_by_every_shape(packed_plan(gates, slots, true), batch, rng);
      if (HasFatalFailure()) return;
    }
  expect_same_by_every_shape(packed_plan(group_plan(1, 70, 3, 9, 17, 20), 5, true), 9, rng);
  expect_same_by_every_shape(packed_plan(group_plan(2, 3, 2, 9, 17, 20), 2, false), 7, rng);
  expect_same_by_every_shape(packed_plan(group_plan(2, 3, 3, 9, 17, 20), 5, true), 3, rng);
}

// More steps than a launch takes whose bundles are made by the one before.
TEST_P(TorusGroups, EveryShapeManySteps) {
  Rng rng = test_rng();
  expect_same_by_every_shape(group_plan(1, 70, 1, 11, 23, 26), 3, rng);
  expect_same_by_every_shape(group_plan(2, 35, 3, 9, 17, 20), 2, rng);
}

// Rests coarser than Q; fractions of one place only and of many.
TEST_P(TorusGroups, Moduli) {
  Rng rng = test_rng();
  for (const u32 log_rest : {12u, 17u, 20u})
    for (const u32 log_switch : {7u, 8u, 12u}) {
      TorusPlan plan = group_plan(3, 4, 2, 6, 20, 24);
      plan.log_lwe_modulus = log_rest, plan.log_switch_modulus = log_switch;
      plan.switch_digits = log_switch / 2;
      expect_same(plan, rotation_input(plan, 3, 2, true, rng));
      if (HasFatalFailure()) return;
    }
}

TEST_P(TorusGroups, AwkwardInputs) {
  Rng rng = test_rng();
  for (const u32 group : {1u, 2u, 4u})
    for (const auto key : kTorusFills)
      for (const auto rows : kTorusFills)
        for (const auto tables : {TorusFill::random, TorusFill::top, TorusFill::bottom}) {
          const bool differences = rng() % 2 != 0;
          const TorusPlan plan =
              packed_plan(group_plan(group, 3, 1, 7, 17, 20), 1 + rng() % 2, differences);
          expect_same(plan, rotation_input(plan, 2, 2, false, rng, key, rows, tables));
          if (HasFatalFailure()) return;
        }
}

TEST_P(TorusGroups, ProductSwitch) {
  Rng rng = test_rng();
  struct Case {
    u32 log_in, log_modulus, log_out, base_log, digits;
  };
  for (const Case& c :
       {Case{23, 21, 21, 2, 10}, Case{17, 16, 16, 2, 7}, Case{32, 32, 20, 8, 4},
        Case{20, 20, 20, 1, 20}, Case{32, 30, 30, 9, 3}, Case{30, 9, 9, 3, 1}, Case{5, 5, 3, 5, 1}})
    for (const u32 in_dim : {1u, 33u, 96u})
      for (const auto& [out_dim, slots] : {std::pair{6u, 1u}, {61u, 3u}, {700u, 1u}})
        for (const u32 batch : {1u, 7u, 70u})
          for (const auto fill : {TorusFill::random, TorusFill::top, TorusFill::bottom}) {
            const device::SwitchShape shape{in_dim,     out_dim,  slots, c.log_modulus, c.log_out,
                                            c.base_log, c.digits, true,  c.log_in};
            std::vector<u32> key(shape.key_rows() * shape.out_words()),
                in(batch * (in_dim + slots));
            for (u64 i = 0; i < key.size(); ++i)
              key[i] = static_cast<u32>(fill_word(fill, i, u64(1) << c.log_modulus, rng));
            for (u64 i = 0; i < in.size(); ++i)
              in[i] = static_cast<u32>(fill_word(fill, i, u64(1) << c.log_in, rng));
            const auto run = [&](const std::shared_ptr<device::Device>& d) {
              const TorusWorld w(d, raising_plan(6, 1, 1, 5, 17, 20));
              const auto k = w.upload(key), rows = w.upload(in);
              const auto out = w.upload(std::vector<u32>(batch * shape.out_words(), 77));
              w.kernels->key_switch(*w.stream, shape, {out.as<u32>(), shape.out(batch)},
                                    {rows.as<const u32>(), shape.in(batch)},
                                    shape.key<const void>(k.data()));
              return w.download<u32>(out, batch * shape.out_words());
            };
            ASSERT_EQ(first_difference(run(device_), run(device::make_ref_device())), "")
                << in_dim << " to " << out_dim << ", batch " << batch << ", " << name_of(fill);
          }
}

class TorusGroupsIsa : public testing::TestWithParam<backend::cpu::Isa> {};
INSTANTIATE_TEST_SUITE_P(, TorusGroupsIsa, testing::ValuesIn(backend::cpu::kAllIsas),
                         [](const testing::TestParamInfo<backend::cpu::Isa>& info) {
                           return info.param == backend::cpu::Isa::scalar ? "portable"
                                  : info.param == backend::cpu::Isa::avx2 ? "avx2"
                                                                          : "avx512";
                         });

TEST_P(TorusGroupsIsa, GivesTheBitsOfRef) {
  if (!backend::cpu::isa_available(GetParam())) GTEST_SKIP() << "not on this machine";
  Rng rng = test_rng();
  for (u32 group = 1; group <= device::kMaxGroup; ++group)
    for (u32 log_n = 3; log_n <= 11; log_n += 2)
      for (const u32 batch : {1u, 3u, 5u}) {
        const TorusPlan plan = packed_plan(group_plan(group, 2, 2, log_n, 19, 22),
                                           batch == 5 ? 3 : 1, (group + log_n / 2 + batch) % 2);
        const auto in = rotation_input(plan, batch, 2, true, rng);
        const TorusWorld candidate(backend::cpu::make_cpu_device(GetParam()), plan);
        const TorusWorld reference(device::make_ref_device(), plan);
        ASSERT_EQ(first_difference(candidate.blind_rotate(in), reference.blind_rotate(in)), "")
            << describe(plan);
      }
}

// ---- the definition

// The 2^g exponents by real numbers: sorted, cut at every place. Of equally good cuts any may be
// taken, so only the least cost is compared.
double least_variance(std::vector<double> fractions) {
  std::sort(fractions.begin(), fractions.end());
  const double m = double(fractions.size());
  double least = 1e300;
  for (std::size_t cut = 0; cut < fractions.size(); ++cut) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < fractions.size(); ++i) {
      const double u = fractions[i] - (i > cut ? 1 : 0);
      sum += u, squares += u * u;
    }
    least = std::min(least, squares / m - sum * sum / (m * m));
  }
  return least;
}

// A trivial key: [s = S] times the weight in the diagonal, nothing else.
std::vector<i64> trivial_key(const TorusPlan& plan, const std::vector<u32>& secret) {
  std::vector<i64> key(plan.steps() * plan.key_polys() * plan.ring_dim(), 0);
  const i64 t = static_cast<i64>(plan.key_modulus()), q = static_cast<i64>(plan.modulus);
  u64 poly = 0;
  for (u32 step = 0; step < plan.steps(); ++step) {
    u32 set = 0;
    for (u32 l = 0; l < plan.group; ++l) set |= secret[step * plan.group + l] << l;
    for (u32 k = plan.first_set(); k < plan.sets(); ++k)
      for (u32 row = 0; row < plan.polys(); ++row)
        for (u32 out = 0; out < plan.polys(); ++out, ++poly)
          if (row == out && k == set) key[poly * plan.ring_dim()] = (t + q / 2) / q;
  }
  return key;
}

// The table f -> f Q / 2N shows which coefficient came to the front: the phase that was read. Its
// distance from the true one is what the cuts cost: bounded, with the variance of the best cuts.
TEST(TorusGroupsMeaning, ReadsThePhaseWithTheBestCuts) {
  Rng rng = test_rng();
  for (const auto& [group, differences] : {std::pair{1u, false},
                                           {2u, false},
                                           {3u, false},
                                           {4u, false},
                                           {6u, false},
                                           {1u, true},
                                           {2u, true},
                                           {4u, true}}) {
    const u32 batch = 60;
    const TorusPlan plan = packed_plan(group_plan(group, 24 / group, 1, 8, 20, 23), 1, differences);
    auto in = rotation_input(plan, batch, 1, false, rng);
    const u64 two_n = 2 * plan.ring_dim(), q = u64(1) << plan.log_switch_modulus;
    std::vector<u32> secret(plan.lwe_dim);
    for (auto& s : secret) s = rng() & 1;
    in.key = trivial_key(plan, secret);
    for (u64 f = 0; f < plan.ring_dim(); ++f) in.tables[f] = f * (plan.modulus / two_n);
    in.offsets[0] = 0;
    const auto out = TorusWorld(device::make_ref_device(), plan).blind_rotate(in);
    double squares = 0, expected = 0;
    for (u32 y = 0; y < batch; ++y) {
      const u32* row = &in.rows[u64(y) * plan.read_words()];
      double phase = row[plan.lwe_dim], variance = 1.0 / 12;
      for (u32 i = 0; i < plan.lwe_dim; ++i) phase -= double(row[i]) * secret[i];
      phase = phase * double(two_n) / double(q);
      for (u32 step = 0; step < plan.steps(); ++step) {
        std::vector<double> fractions;
        for (u32 set = 0; set < plan.sets(); ++set) {
          double x = 0;
          for (u32 l = 0; l < group; ++l)
            if (set >> l & 1) x += row[step * group + l];
          x = x * double(two_n) / double(q);
          fractions.push_back(x - std::floor(x));
        }
        variance += least_variance(fractions);
      }
      const double read = double(out[(u64(y) + 1) * plan.extracted_words() - 1]) * double(two_n) /
                          double(plan.modulus);
      // phases of the upper half read f - N negated
      const auto distance = [&](double at) {
        const double x = at - phase;
        return std::abs(x - double(two_n) * std::round(x / double(two_n)));
      };
      const double error = std::min(distance(read), distance(1.5 * double(two_n) - read));
      squares += error * error, expected += variance;
    }
    // products of a trivial key round by less than a step; sums of 60 squares
    EXPECT_LT(squares, 3 * expected + 1) << group;
  }
}

// One step by integers: the body's polynomial alone is not zero yet, so that one row enters.
// Differences from ref are those of the transform, whose mean size a rounding leaves what it is.
TEST(TorusGroupsMeaning, StepsAreExternalProductsWithTheTransformsError) {
  Rng rng = test_rng();
  for (const auto& [group, log_n, log_modulus, bits, differences] :
       {std::tuple{1u, 8u, 25u, 26u, false},
        {2u, 8u, 25u, 26u, false},
        {4u, 7u, 25u, 26u, false},
        {2u, 11u, 23u, 26u, false},
        {1u, 8u, 25u, 26u, true},
        {2u, 8u, 25u, 26u, true}}) {
    const TorusPlan plan =
        packed_plan(group_plan(group, 1, 1, log_n, log_modulus, bits), 1, differences);
    SCOPED_TRACE(describe(plan));
    const u64 n = plan.ring_dim(), q = plan.modulus;
    const i128 t = plan.key_modulus();
    const u32 runs = log_n == 11 ? 1 : 8;
    double size = 0, count = 0;
    for (u32 run = 0; run < runs; ++run) {
      auto in = rotation_input(plan, 1, 1, false, rng);
      // whole steps: fractions of 0, c_S is the sum itself
      const u32 unit = 1u << (plan.log_switch_modulus - log_n - 1);
      std::vector<u64> places;
      for (u32& word : in.rows) {
        places.push_back(rng() % (2 * n));
        word = static_cast<u32>(places.back() * unit);
      }
      in.offsets[0] = 0, in.outputs = 1;
      const auto found = TorusWorld(device::make_ref_device(), plan).blind_rotate(in);
      Poly table(n);
      for (u64 c = 0; c < n; ++c) table[c] = centre(in.tables[c], q);
      const Poly start = shifted(table, 2 * n - places.back());
      for (u32 out = 0; out < 2; ++out) {
        Poly sum(n, 0);
        for (u32 set = plan.first_set(); set < plan.sets(); ++set) {
          u64 turn = 0;
          for (u32 l = 0; l < group; ++l)
            if (set >> l & 1) turn += places[l];
          Poly moved = shifted(start, turn % (2 * n));
          for (u64 c = 0; c < n && differences; ++c) moved[c] -= start[c];
          const u64 key = set - plan.first_set();
          add_product(sum, moved, &in.key[((key * 2 + 1) * 2 + out) * n], t);
        }
        for (u64 c = 0; c < (out == 0 ? n : 1); ++c) {
          const i128 before = differences && out == 1 ? i128(start[c]) : 0;
          const i128 exact = before + floor_divide(2 * i128(q) * sum[c] + t, 2 * t);
          // extraction: mask word c of the constant coefficient
          const i128 got = out == 1 ? i128(found[n])
                           : c == 0 ? i128(found[0])
                                    : -i128(found[n - c]);
          size += std::abs(static_cast<double>(centre(got - exact, q))), count += 1;
        }
      }
    }
    const double measured = size / count * std::sqrt(std::acos(-1.0) / 2);
    const double model = device::transform_error_std(plan) / std::sqrt(2.0);
    std::printf("g = %u, N = %u: transform's error %.4f, model %.4f\n", group, plan.ring_dim(),
                measured, model);
    EXPECT_GT(measured / model, 0.5);
    EXPECT_LT(measured / model, 1.5);
  }
}

}  // namespace
}  // namespace crenel::test
