// Key switch, linear combinations, modulus switch and sampling: every device gives the bits of ref.
#include "support/devices.h"
#include "support/torus_world.h"

namespace crenel::test {
namespace {

class TorusLwe : public DeviceTest {
 protected:
  static TorusPlan plan_of(u32 lwe_dim, u32 slots) {
    return raising_plan(lwe_dim, 1, slots, 5, 17, 20);
  }
  // `operation` writes `words` words of type T to its second argument.
  template <class T, class F>
  void expect_same(const TorusPlan& plan, u64 words, const F& operation) const {
    const auto run = [&](const std::shared_ptr<device::Device>& d) {
      const TorusWorld world(d, plan);
      const auto out = world.upload(std::vector<T>(words, static_cast<T>(0xa5a5a5a5a5a5a5a5u)));
      operation(world, out.template as<T>());
      return world.download<T>(out, words);
    };
    ASSERT_EQ(first_difference(run(device_), run(device::make_ref_device())), "");
  }
};
CRENEL_CANDIDATE_SUITE(TorusLwe);

template <class T>
std::vector<T> words(u64 count, u64 modulus, Rng& rng, TorusFill fill = TorusFill::random) {
  std::vector<T> out(count);
  for (u64 i = 0; i < count; ++i)
    out[i] = static_cast<T>(modulus == 0 ? rng() : fill_word(fill, i, modulus, rng));
  return out;
}

TEST_P(TorusLwe, KeySwitch) {
  Rng rng = test_rng();
  struct Case {
    u32 log_modulus, log_out, base_log, digits;
  };
  for (const Case& c : {Case{15, 10, 5, 3},
                        {17, 10, 6, 3},
                        {16, 16, 8, 2},
                        {32, 32, 7, 5},
                        {33, 32, 5, 7},
                        {35, 12, 5, 7},
                        {40, 1, 4, 10},
                        {5, 3, 6, 1},
                        {14, 11, 1, 14},
                        {20, 9, 3, 9}})
    for (const u32 in_dim : {1u, 33u, 96u})
      for (const u32 out_dim : {6u, 61u})
        for (const u32 slots : {1u, 3u, 5u}) {
          const device::SwitchShape shape{in_dim,    out_dim,    slots,   c.log_modulus,
                                          c.log_out, c.base_log, c.digits};
          const u64 key_words = shape.key_rows() * shape.out_words();
          const u64 modulus = u64(1) << c.log_modulus;
          const auto key32 =
              words<u32>(c.log_modulus <= 32 ? key_words : 1, std::min(modulus, u64(1) << 32), rng);
          const auto key64 = words<u64>(c.log_modulus <= 32 ? 1 : key_words, modulus, rng);
          for (const u32 batch : {1u, 2u, 7u, 33u, 201u})
            for (const auto fill : {TorusFill::random, TorusFill::top, TorusFill::zero}) {
              if (batch == 201 && (in_dim != 33 || slots != 3)) continue;
              SCOPED_TRACE(cat("2^", c.log_modulus, " to 2^", c.log_out, ", ", in_dim, " to ",
                               out_dim, ", slots ", slots, ", batch ", batch, ", ", name_of(fill)));
              if (batch >= 33 && fill != TorusFill::random) continue;
              const auto in = words<u64>(u64(batch) * (in_dim + slots), modulus, rng, fill);
              expect_same<u32>(plan_of(6, 1), u64(batch) * shape.out_words(),
                               [&](const TorusWorld& w, u32* out) {
                                 const auto k =
                                     c.log_modulus <= 32 ? w.upload(key32) : w.upload(key64);
                                 const auto rows = w.upload(in);
                                 w.kernels->key_switch(*w.stream, shape, {out, shape.out(batch)},
                                                       {rows.as<const u64>(), shape.in(batch)},
                                                       shape.key<const void>(k.data()));
                                 w.stream->synchronize();
                               });
              if (HasFatalFailure()) return;
            }
        }
}

TEST_P(TorusLwe, Linear) {
  Rng rng = test_rng();
  for (const u32 log_modulus : {1u, 10u, 17u, 32u})
    for (const u32 slots : {1u, 3u})
      for (const u32 batch : {1u, 7u, 33u})
        for (const u32 terms : {1u, 2u, 5u, 12u}) {
          SCOPED_TRACE(
              cat("2^", log_modulus, ", slots ", slots, ", batch ", batch, ", terms ", terms));
          const TorusPlan plan = plan_of(19, slots);
          const u64 count = u64(batch) * plan.words(), modulus = u64(1) << log_modulus;
          std::vector<std::vector<u32>> data;
          for (u32 t = 0; t < terms; ++t)
            data.push_back(words<u32>(count, modulus, rng, kTorusFills[t % 5]));
          std::vector<i64> factors;
          for (u32 t = 0; t < terms; ++t)
            factors.push_back(t == 0 ? -1 : t == 1 ? INT64_MIN : static_cast<i64>(rng()));
          const u32 constant = static_cast<u32>(rng() % modulus);
          for (const bool in_place : {false, true})
            expect_same<u32>(plan, count, [&](const TorusWorld& w, u32* out) {
              std::vector<device::Buffer> buffers;
              std::vector<device::LweTerm> list;
              for (u32 t = 0; t < terms; ++t) {
                buffers.push_back(w.upload(data[t]));
                list.push_back({buffers.back().as<u32>(), factors[t]});
              }
              if (in_place) {  // the last input is the output
                w.stream->copy(out, buffers.back().data(), count * sizeof(u32));
                list.back().data = out;
              }
              w.kernels->linear(*w.stream, {out, {batch, plan.lwe_dim, slots, log_modulus}}, list,
                                constant);
              w.stream->synchronize();
            });
        }
}

// Sums of rows that lie apart or are read again, of one term to more than a launch takes.
TEST_P(TorusLwe, Sums) {
  Rng rng = test_rng();
  struct Case {
    u32 log_modulus, slots, rows, sums, most;
  };
  for (const Case& c : {Case{1, 1, 1, 1, 1}, Case{17, 1, 1, 147, 5}, Case{32, 3, 2, 65, 3},
                        Case{25, 1, 7, 9, 8}, Case{25, 1, 3, 2, 400}, Case{10, 2, 33, 3, 66}}) {
    SCOPED_TRACE(cat("2^", c.log_modulus, ", slots ", c.slots, ", ", c.sums, " sums of ", c.rows,
                     " rows, up to ", c.most, " terms"));
    const TorusPlan plan = plan_of(19, c.slots);
    const u64 modulus = u64(1) << c.log_modulus, steps = 4, source_rows = c.rows * steps + 5;
    const auto in = words<u32>(source_rows * plan.words(), modulus, rng, TorusFill::random);
    struct Term {
      u64 row;
      u32 step;
      i64 factor;
    };
    std::vector<std::vector<Term>> sums(c.sums);
    std::vector<u32> constants;
    for (auto& terms : sums) {
      // the first sum has all the terms that any has, the last none
      terms.resize(&terms == &sums.front() ? c.most : rng() % (c.most + 1));
      if (c.sums > 1 && &terms == &sums.back()) terms.clear();
      for (Term& t : terms)
        t = {rng() % 5, static_cast<u32>(1 + rng() % steps), static_cast<i64>(rng())};
      constants.push_back(static_cast<u32>(rng() % modulus));
    }
    const u64 rows = u64(c.sums) * c.rows;
    expect_same<u32>(plan, rows * plan.words(), [&](const TorusWorld& w, u32* out) {
      const auto buffer = w.upload(in);
      std::vector<std::vector<device::LweRowsTerm>> lists;
      std::vector<device::LweSum> wanted;
      lists.reserve(c.sums);
      for (u32 k = 0; k < c.sums; ++k) {
        auto& list = lists.emplace_back();
        for (const Term& t : sums[k])
          list.push_back({buffer.as<const u32>() + t.row * plan.words(), t.step, t.factor});
        wanted.push_back({list, constants[k]});
      }
      w.kernels->sums(*w.stream, {out, {rows, plan.lwe_dim, c.slots, c.log_modulus}}, wanted);
      w.stream->synchronize();
    });
  }
}

TEST_P(TorusLwe, ModSwitch) {
  Rng rng = test_rng();
  const TorusPlan plan = plan_of(21, 2);
  for (const u32 from : {1u, 10u, 17u, 31u, 32u})
    for (const u32 to : {1u, 9u, 10u, 17u, 32u})
      for (const auto fill : kTorusFills)
        for (const bool in_place : {false, true}) {
          SCOPED_TRACE(cat("2^", from, " to 2^", to, ", ", name_of(fill)));
          const u32 batch = 5;
          const u64 count = u64(batch) * plan.words();
          const auto in = words<u32>(count, u64(1) << from, rng, fill);
          expect_same<u32>(plan, count, [&](const TorusWorld& w, u32* out) {
            const auto rows = w.upload(in);
            if (in_place) w.stream->copy(out, rows.data(), count * sizeof(u32));
            const u32* source = in_place ? out : rows.as<const u32>();
            w.kernels->mod_switch(*w.stream, {out, {batch, plan.lwe_dim, plan.slots, to}},
                                  {source, {batch, plan.lwe_dim, plan.slots, from}});
            w.stream->synchronize();
          });
        }
}

TEST_P(TorusLwe, SampleAndExpand) {
  Rng rng = test_rng();
  const random::Seed mask_seed = torus_seed(rng), secret_seed = torus_seed(rng);
  // the serial's low word overflows between rows
  const u64 mask_serial = (rng() << 32) + 0xfffffffeu, error_serial = (rng() << 32) + 0xfffffffdu;
  for (const u32 log_modulus : {1u, 10u, 17u, 31u, 32u, 33u, 40u, 63u, 64u})
    for (const u32 dim : {1u, 7u, 8u, 16u, 61u, 300u})
      for (const u32 slots : {1u, 3u, 9u, 17u}) {
        SCOPED_TRACE(cat("2^", log_modulus, ", dimension ", dim, ", slots ", slots));
        const u64 rows = 5, count = rows * (dim + slots);
        const device::LweShape shape{rows, dim, slots, log_modulus};
        const auto secrets = torus_secrets(u64(slots) * dim, rng);
        const auto messages = words<u64>(rows * slots, 0, rng);
        const auto check = [&](auto word) {
          using W = decltype(word);
          for (const bool with_messages : {false, true})
            expect_same<W>(plan_of(6, 1), count, [&](const TorusWorld& w, W* out) {
              const auto s = w.upload(secrets);
              const auto m = w.upload(messages);
              w.kernels->sample_lwe(*w.stream, {out, shape}, {mask_seed, mask_serial},
                                    {secret_seed, error_serial}, s.template as<i8>(),
                                    with_messages ? m.template as<u64>() : nullptr);
              w.stream->synchronize();
            });
          expect_same<W>(plan_of(6, 1), count, [&](const TorusWorld& w, W* out) {
            const auto b = w.upload(messages);
            w.kernels->expand_lwe(*w.stream, {out, shape}, {mask_seed, mask_serial},
                                  b.template as<u64>());
            w.stream->synchronize();
          });
        };
        if (log_modulus <= 32)
          check(u32{});
        else
          check(u64{});
        if (HasFatalFailure()) return;
      }
}

TEST_P(TorusLwe, Phase) {
  Rng rng = test_rng();
  for (const u32 log_modulus : {1u, 10u, 17u, 32u})
    for (const u32 dim : {1u, 31u, 64u, 656u})
      for (const u32 slots : {1u, 3u, 5u})
        for (const u64 rows : {1u, 7u, 33u})
          for (const auto fill : kTorusFills) {
            SCOPED_TRACE(cat("2^", log_modulus, ", dimension ", dim, ", slots ", slots, ", ", rows,
                             " rows, ", name_of(fill)));
            const auto in = words<u32>(rows * (dim + slots), u64(1) << log_modulus, rng, fill);
            const auto secrets = torus_secrets(u64(slots) * dim, rng);
            expect_same<u32>(plan_of(6, 1), rows * slots, [&](const TorusWorld& w, u32* out) {
              const auto data = w.upload(in);
              const auto s = w.upload(secrets);
              w.kernels->phase(*w.stream, out,
                               {data.as<const u32>(), {rows, dim, slots, log_modulus}}, s.as<i8>());
              w.stream->synchronize();
            });
            if (HasFatalFailure()) return;
          }
}

}  // namespace
}  // namespace crenel::test
