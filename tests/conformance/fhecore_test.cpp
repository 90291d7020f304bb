// Everything that runs on emulated FHECore units, on every device: the bits of the library's own
// kernels on ref, and exactly the instructions of the plan.
#include "support/chains.h"
#include "support/devices.h"
#include "support/fhecore_world.h"

namespace crenel::test {
namespace {

class Fhecore : public DeviceTest {};
CRENEL_DEVICE_SUITE(Fhecore);

using Ctx = Context;
using V = Views;

struct World {
  Pair pair;
  std::unique_ptr<device::FhecoreKernels> fhecore;

  World(const std::shared_ptr<device::Device>& device, u32 log_n, const std::vector<u64>& primes)
      : pair(make_pair(device, log_n, primes)), fhecore(fhecore_of(*device)) {}
  void expect_executed(const FhecoreCounts& counts) {
    expect_counts(*fhecore, *pair.candidate.stream, counts);
  }
};

void check_transforms(World& w, Rng& rng, const ShapeCase& s, FhecoreDecomposition decomposition,
                      Fill fill = Fill::random) {
  SCOPED_TRACE(cat(s.name, ", ", name_of(decomposition), ", ", name_of(fill)));
  const auto table =
      w.fhecore->prepare(device::make_fhecore_transform(w.pair.reference.ring, decomposition));
  const auto coeff =
      random_poly(w.pair.ring(), rng, s.shape(), s.limbs(), Domain::coeff, s.pad, fill);
  auto eval = coeff;
  eval.view.domain = Domain::eval;
  auto out_eval = garbage_poly(rng, s.shape(), s.limbs(), Domain::eval, s.pad);
  auto out_coeff = out_eval;
  out_coeff.view.domain = Domain::coeff;
  const auto in_domain = [](const ring::PolyView<u32>& v, Domain domain) {
    auto view = v;
    view.domain = domain;
    return view;
  };
  const FhecoreCounts counts = (u64(s.shape().polys()) * s.limb_count) *
                               device::fhecore_transform_work(s.log_n, decomposition).counts;
  w.fhecore->reset_counts(*w.pair.candidate.stream);
  {
    SCOPED_TRACE("ntt");
    expect_same(
        w.pair, {out_eval, coeff}, 1,
        [&](Ctx& c, const V& v) { w.fhecore->ntt(*c.stream, v[0], v[1], table); },
        [](Ctx& c, const V& v) { c.kernels->ntt(*c.stream, v[0], v[1]); });
    w.expect_executed(counts);
  }
  {
    SCOPED_TRACE("intt");
    expect_same(
        w.pair, {out_coeff, eval}, 1,
        [&](Ctx& c, const V& v) { w.fhecore->intt(*c.stream, v[0], v[1], table); },
        [](Ctx& c, const V& v) { c.kernels->intt(*c.stream, v[0], v[1]); });
    w.expect_executed(counts);
  }
  {
    SCOPED_TRACE("ntt in place");
    expect_same(
        w.pair, {coeff}, 1,
        [&](Ctx& c, const V& v) {
          w.fhecore->ntt(*c.stream, in_domain(v[0], Domain::eval), v[0], table);
        },
        [&](Ctx& c, const V& v) {
          c.kernels->ntt(*c.stream, in_domain(v[0], Domain::eval), v[0]);
        });
    w.expect_executed(counts);
  }
}

const ShapeCase kUnitShapes[] = {
    {"2^8", 8, 2, 3, 0, 4, {}},           {"2^8 window", 8, 3, 1, 2, 5, {2, 2, 1, 1}},
    {"2^9", 9, 1, 2, 0, 5, {1, 0, 0, 0}}, {"2^10", 10, 2, 1, 0, 4, {0, 0, 1, 0}},
    {"2^11", 11, 1, 2, 1, 4, {}},         {"2^12", 12, 1, 1, 0, 5, {0, 2, 0, 1}},
    {"2^13", 13, 1, 1, 1, 4, {}},         {"2^14", 14, 1, 1, 0, 2, {}},
    {"2^15", 15, 1, 1, 3, 1, {}},         {"2^17", 17, 1, 1, 0, 1, {}},
};

TEST_P(Fhecore, TransformsOfEverySize) {
  Rng rng = test_rng();
  for (const auto& s : kUnitShapes) {
    World w(device_, s.log_n, mixed_primes(s.log_n, s.first_limb + s.limb_count));
    check_transforms(w, rng, s, FhecoreDecomposition::radix16);
  }
}

TEST_P(Fhecore, TransformsOfRandomRings) {
  Rng rng = test_rng();
  for (u32 repeat = 0; repeat < 8; ++repeat) {
    const u32 log_n = 8 + repeat % 4;
    const u64 low = u64(1) << 19, high = u64(1) << 31;
    // every length of a prime with equal chance
    const u64 centre = std::min((low << (rng() % 12)) + rng() % low, high - 1);
    World w(device_, log_n, math::nearest_ntt_primes(centre, 3, low, high, u64(2) << log_n));
    check_transforms(w, rng, {"random ring", log_n, 1, 1, 0, 3, {}}, FhecoreDecomposition::radix16);
  }
}

TEST_P(Fhecore, TransformsOfSpecialValues) {
  Rng rng = test_rng();
  for (const auto& s : kUnitShapes) {
    if (s.log_n > 11) continue;
    World w(device_, s.log_n, largest_primes(s.log_n, s.first_limb + s.limb_count));
    for (const Fill fill : kEveryFill)
      check_transforms(w, rng, s, FhecoreDecomposition::radix16, fill);
  }
}

// boot40: a terminal prime of 25 bits, a main prime of 30, a special one of 31.
TEST_P(Fhecore, WholeLimbsOfBoot40InBothDecompositions) {
  Rng rng = test_rng();
  World w(device_, 16, {kTerminalPrimes[0], kMainPrimes[0], kSpecialPrimes[0]});
  const ShapeCase narrow = {"25 bits", 16, 1, 1, 0, 1, {}}, wide = {"31 bits", 16, 1, 1, 2, 1, {}},
                  all = {"3 limbs", 16, 1, 1, 0, 3, {}};
  check_transforms(w, rng, all, FhecoreDecomposition::radix16);
  check_transforms(w, rng, narrow, FhecoreDecomposition::radix256);
  check_transforms(w, rng, wide, FhecoreDecomposition::radix256, Fill::top);
}

void check_conversion(World& w, Rng& rng, ring::PolyShape shape, const rns::BaseConversion& t,
                      Padding pad = {}, Fill fill = Fill::random) {
  SCOPED_TRACE(cat(t.source.size(), " to ", t.destination.size(), " limbs, 2^", shape.log_n, ", ",
                   name_of(fill)));
  const auto moduli = moduli_of(w.pair.ring());
  const auto table = w.fhecore->prepare(device::make_fhecore_conversion(moduli, t));
  const auto library = w.pair.reference.kernels->prepare(rns::BaseConversion(t));
  const auto in = random_poly(w.pair.ring(), rng, shape, t.source, Domain::coeff, pad, fill);
  const auto out = garbage_poly(rng, shape, t.destination, Domain::coeff, pad);
  w.fhecore->reset_counts(*w.pair.candidate.stream);
  expect_same(
      w.pair, {out, in}, 1,
      [&](Ctx& c, const V& v) { w.fhecore->base_convert(*c.stream, v[0], v[1], table); },
      [&](Ctx& c, const V& v) { c.kernels->base_convert(*c.stream, v[0], v[1], library); });
  w.expect_executed(
      u64(shape.polys()) *
      device::fhecore_conversion_work(shape.log_n, t.source.size(), t.destination.size()).counts);
}

TEST_P(Fhecore, BaseConversions) {
  Rng rng = test_rng();
  struct Case {
    u32 log_n, sources, destinations, components, batch;
    Padding pad;
  };
  const Case cases[] = {{4, 1, 1, 1, 1, {}},
                        {5, 3, 8, 2, 2, {}},
                        {8, 9, 27, 1, 1, {}},
                        {8, 16, 16, 1, 3, {}},
                        {9, 17, 9, 2, 1, {}},
                        {10, 12, 47, 1, 1, {}},
                        {4, 33, 24, 1, 1, {1, 0, 0, 1}},
                        {12, 2, 7, 1, 2, {0, 1, 1, 0}}};
  for (const auto& k : cases)
    for (const Fill fill : {Fill::random, Fill::top}) {
      const u32 log_n = std::max(k.log_n, 4u);
      World w(device_, log_n, mixed_primes(log_n, k.sources + k.destinations));
      const auto t =
          rns::make_base_conversion(moduli_of(w.pair.ring()), LimbSet::range(0, k.sources),
                                    LimbSet::range(k.sources, k.sources + k.destinations));
      check_conversion(w, rng, {log_n, k.components, k.batch}, t, k.pad, fill);
    }
}

TEST_P(Fhecore, TilesWithFaultsAgainstTheModel) {
  Rng rng = test_rng();
  const u32 count = 37;
  std::vector<u32> a(count * 256), b(a.size()), c(a.size()), constants(count * 64);
  for (auto& x : a) x = static_cast<u32>(rng());
  for (u32 tile = 0; tile < count; ++tile)
    for (u32 half = 0; half < 2; ++half) {
      fhecore::ColumnConstants columns[8];
      for (auto& col : columns) col = fhecore::column_constants(random_modulus(rng));
      auto f = fhecore::to_fragment(columns);
      if (tile % 3 == 1) f.at[rng() % 32] ^= u32(1) << (rng() % 32);  // raw words, right or not
      std::copy_n(f.at, 32, constants.begin() + (tile * 2 + half) * 32);
      for (u32 e = 0; e < 128; ++e) {
        const u32 at = tile * 256 + e / 8 * 16 + half * 8 + e % 8;
        const u32 q = columns[e % 8].q >> columns[e % 8].shift;
        b[at] = static_cast<u32>(rng()) % (rng() % 500 == 0 ? ~u32(0) : q);
        c[at] = static_cast<u32>(rng()) % (rng() % 500 == 0 ? ~u32(0) : q);
      }
    }
  const auto run = [&](device::Device& device, bool with_c, u32 sets, std::vector<u32>& d,
                       std::vector<u32>& faults) {
    const auto stream = device.make_stream();
    const auto kernels = fhecore_of(device);
    const auto upload = [&](const std::vector<u32>& v) {
      auto buffer = stream->allocate(v.size() * sizeof(u32));
      stream->copy_in(buffer.data(), v.data(), v.size() * sizeof(u32));
      return buffer;
    };
    const auto da = upload(a), db = upload(b), dc = upload(c), dk = upload(constants),
               dd = upload(d), df = upload(faults);
    kernels->reset_counts(*stream);
    kernels->fhe_sync(*stream,
                      {dd.as<u32>(), da.as<u32>(), db.as<u32>(), with_c ? dc.as<u32>() : nullptr,
                       dk.as<u32>(), sets, df.as<u32>(), count});
    stream->copy_out(d.data(), dd.data(), d.size() * sizeof(u32));
    stream->copy_out(faults.data(), df.data(), faults.size() * sizeof(u32));
    u64 bits = 0;
    for (const u32 f : faults) bits += static_cast<u64>(__builtin_popcount(f));
    expect_counts(*kernels, *stream, {count, 2 * count, 2 * count, 0, bits});
  };
  for (const bool with_c : {true, false})
    for (const u32 sets : {count, 1u}) {
      SCOPED_TRACE(cat(with_c ? "with C" : "without C", ", sets ", sets));
      std::vector<u32> d(a.size(), 0xdeadbeef), faults(count, ~u32(0));
      run(*device_, with_c, sets, d, faults);
      for (u32 tile = 0; tile < count; ++tile) {
        u32 expected[2][128], bits = 0;
        for (u32 half = 0; half < 2; ++half) {
          u32 right[128], addend[128], words[32];
          for (u32 e = 0; e < 128; ++e) {
            const u32 at = tile * 256 + e / 8 * 16 + half * 8 + e % 8;
            right[e] = b[at];
            addend[e] = c[at];
          }
          const u32* lanes = constants.data() + ((sets == 1 ? 0 : tile) * 2 + half) * 32;
          for (u32 i = 0; i < 32; ++i) words[i] = lanes[i % 4 * 8 + i / 4];
          bits |= fhecore::fhec_raw(expected[half], a.data() + tile * 256, right,
                                    with_c ? addend : nullptr, words)
                  << (8 * half);
        }
        ASSERT_EQ(faults[tile], bits) << "tile " << tile;
        for (u32 e = 0; e < 256; ++e)
          ASSERT_EQ(d[tile * 256 + e], expected[e / 8 % 2][e / 16 * 8 + e % 8])
              << "tile " << tile << " element " << e;
      }
    }
}

TEST_P(Fhecore, Refusals) {
  World w(device_, 8, mixed_primes(8, 3));
  auto& stream = *w.pair.candidate.stream;
  const auto buffer = stream.allocate(3 * 256 * sizeof(u32) + 64);
  u32* data = buffer.as<u32>();
  const auto table = w.fhecore->prepare(
      device::make_fhecore_transform(w.pair.reference.ring, FhecoreDecomposition::radix16));
  const auto limbs = LimbSet::range(0, 2);
  const ring::PolyView<u32> coeff(data, {8, 1, 1}, limbs, Domain::coeff);
  EXPECT_THROW(w.fhecore->ntt(stream, coeff, coeff, table), StateError);  // the output's domain
  EXPECT_THROW(w.fhecore->intt(stream, coeff, coeff, table), StateError);
  const auto conversion = w.fhecore->prepare(device::make_fhecore_conversion(
      moduli_of(w.pair.ring()),
      rns::make_base_conversion(moduli_of(w.pair.ring()), limbs, LimbSet::range(2, 3))));
  const ring::PolyView<u32> out(data + 512, {8, 1, 1}, LimbSet::range(2, 3), Domain::coeff);
  w.fhecore->base_convert(stream, out, coeff, conversion);
  EXPECT_THROW(w.fhecore->base_convert(stream, coeff, out, conversion), StateError);
  const ring::PolyView<u32> overlap(data + 256, {8, 1, 1}, LimbSet::range(2, 3), Domain::coeff);
  EXPECT_THROW(w.fhecore->base_convert(stream, overlap, coeff, conversion), StateError);
  EXPECT_THROW(w.fhecore->fhe_sync(stream, {data, data, data + 1, nullptr, data, 1, nullptr, 1}),
               ParameterError);
  EXPECT_THROW(w.fhecore->fhe_sync(stream, {data, data, data, nullptr, nullptr, 1, nullptr, 1}),
               ParameterError);
  EXPECT_THROW(w.fhecore->fhe_sync(stream, {data, data, data, nullptr, data, 3, nullptr, 2}),
               ParameterError);
}

}  // namespace
}  // namespace crenel::test
