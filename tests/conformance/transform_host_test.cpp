// CUDA's transforms on the host, all threads of a block: they have the bits of ref, in
// whatever order threads come to barriers. What is left for a GPU to show is that launches are
// right.
#include "support/host_block.h"

//
#include <bit>

// Unlike host_warp.h's, of the blocks that run.
#define __syncwarp() crenel::test::HostBlocks::current().sync_warp()
static int __clz(unsigned x) { return std::countl_zero(x); }
template <class T>
static T __ldg(const T* p) {
  return *p;
}
static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace crenel::backend::cuda {
// One part meets nobody.
inline void fence_system() {}
inline void store_release_system(u32*, u32) {}
inline u32 load_acquire_system(const u32* p) { return *p; }
inline void fence_background() {}
inline u64 global_nanoseconds() { return 0; }
}  // namespace crenel::backend::cuda
static void __trap() { std::abort(); }

#include "backends/cuda/poly/host/last_roots.h"
#include "backends/cuda/poly/kernels/column_spread.cuh"
#include "backends/cuda/poly/kernels/ntt_columns.cuh"
#include "backends/cuda/poly/kernels/ntt_rows.cuh"
#include "support/chains.h"
#include "support/same.h"

namespace crenel::test {
namespace {

using namespace backend::cuda;

backend::cuda::Pair shoup(u32 x, u32 q) {
  const auto c = math::make_shoup<u32>(x, q);
  return {c.value, c.quotient};
}

// Tables of a ring for one direction, as the backend uploads them, and scales of the last stage.
struct Tables {
  explicit Tables(const ring::Ring& ring, Rng& rng, bool forward = false) {
    for (u32 id = 0; id < ring.prime_count(); ++id) {
      const ring::PrimeTables& p = ring.prime(id);
      const math::Modulus<u32>& m = p.modulus;
      const auto times = [&](u32 a, u32 b) { return math::mul_mod<u32>(a, b, m); };
      const u32 root = p.inverse_roots[1].value, n_inv = p.n_inv.value;
      primes.push_back(
          {m.q, m.q_inv, m.r, m.r2, shoup(n_inv, m.q), shoup(times(n_inv, root), m.q)});
      const auto& roots = forward ? p.roots : p.inverse_roots;
      append_last_roots(roots, m, last);
      for (u32 i = 0; i < ring.ring_dim() / 16; ++i)
        pairs.push_back({roots[i].value, roots[i].quotient});
      factors.push_back(static_cast<u32>(rng() % m.q));
      const u32 c = times(factors.back(), n_inv);
      scales.push_back({shoup(c, m.q), shoup(times(c, root), m.q)});
    }
  }
  std::vector<PrimeConstants> primes;
  std::vector<u32> factors;
  std::vector<uint2> pairs;
  std::vector<uint4> last;
  std::vector<InverseScale> scales;
};

TransformArgs arguments(const Tables& tables, const PolyView<u32>& out, const PolyView<u32>& in) {
  TransformArgs args = {};
  args.primes = tables.primes.data(), args.roots = tables.pairs.data();
  args.last_roots = tables.last.data();
  args.in = {in.data, in.component_stride, in.batch_stride};
  args.out = {out.data, out.component_stride, out.batch_stride};
  args.log_n = out.shape.log_n, args.components = out.shape.components;
  args.polys = out.shape.polys();
  for (u32 l = 0; l < out.limbs.size(); ++l) {
    args.prime.at[l] = static_cast<u8>(out.limbs[l]);
    args.in_position.at[l] = static_cast<u8>(in.limbs.find(out.limbs[l]));
  }
  return args;
}

// Runs on the host, on `out` and `args.polys` polynomials.
using Run = std::function<void(const TransformArgs&, u32 limbs, const InverseScale*)>;

template <u32 LogN>
void run_passes(TransformArgs args, u32 limbs, const InverseScale* scales) {
  constexpr u32 kRow = kRowBits<LogN>, kColumn = kColumnBits<LogN>;
  args.polys_per_block = args.polys > 1 ? 2 : 1;
  launch_blocks([](const TransformArgs& a) { row_inverse<kRow, PlainRows>(a, PlainRows()); },
                {(1u << kColumn) / kTileRows<kRow>, (args.polys + 1) / 2, limbs}, 1,
                kRowThreads<kRow>, args);
  args.in = {args.out.data, args.out.component_stride, args.out.batch_stride};
  for (u32 l = 0; l < limbs; ++l) args.in_position.at[l] = static_cast<u8>(l);
  launch_blocks(
      [&](const TransformArgs& a) {
        if (scales)
          column_inverse<LogN, InverseTail::shifted>(a, scales);
        else
          column_inverse<LogN, InverseTail::canonical>(a, scales);
      },
      {(1u << kRow) / kTileColumns<kColumn>, args.polys, limbs}, 1, kColumnThreads<kColumn>, args);
}

// Both tails, the second in place.
void expect_inverse(u32 log_n, u32 components, u32 batch, u32 count, const Run& run, Rng& rng) {
  SCOPED_TRACE(
      cat("2^", log_n, ", ", components, " components, batch ", batch, ", ", count, " limbs"));
  const PolyShape shape{log_n, components, batch};
  auto reference = make_context(device::make_ref_device(), log_n, mixed_primes(log_n, 4));
  const ring::Ring& ring = *reference.ring;
  const Tables tables(ring, rng);
  const LimbSet limbs = LimbSet::range(1, 1 + count);
  const auto in = random_poly(ring, rng, shape, limbs, Domain::eval, {1, 1, 1, 0});
  auto out = garbage_poly(rng, shape, limbs, Domain::coeff);
  auto expected = out;
  expected.words = run_on(reference, {out, in}, [](Context& r, const Views& v) {
    r.kernels->intt(*r.stream, v[0], v[1]);
  })[0];
  auto input = in;
  run(arguments(tables, out.host(), input.host()), count, nullptr);
  EXPECT_TRUE(same_words(out, out.words, expected.words));
  EXPECT_EQ(input.words, in.words);

  std::vector<InverseScale> scales;
  for (u32 l = 0; l < count; ++l) scales.push_back(tables.scales[limbs[l]]);
  run(arguments(tables, input.host(), input.host()), count, scales.data());
  for (u32 b = 0; b < batch; ++b)
    for (u32 c = 0; c < components; ++c)
      for (u32 l = 0; l < count; ++l)
        for (u64 i = 0; i < ring.ring_dim(); ++i) {
          const auto& m = ring.modulus(limbs[l]);
          const u32 x =
              math::mul_mod<u32>(expected.host().limb(b, c, l)[i], tables.factors[limbs[l]], m);
          ASSERT_EQ(input.host().limb(b, c, l)[i], math::add_mod<u32>(x, m.q / 2, m.q))
              << "batch " << b << " component " << c << " limb " << l << " value " << i
              << "; repeat with CRENEL_SEED=" << run_seed();
        }
}

// Both passes, the second in place; of the first limb the last component is another polynomial's.
template <u32 LogN>
void expect_forward(u32 components, u32 batch, u32 count, Rng& rng) {
  SCOPED_TRACE(cat("2^", LogN, "; repeat with CRENEL_SEED=", run_seed()));
  ASSERT_GT(components * count, 1u) << "one is not transformed";
  constexpr u32 kRow = kRowBits<LogN>, kColumn = kColumnBits<LogN>;
  auto reference = make_context(device::make_ref_device(), LogN, mixed_primes(LogN, 4));
  const Tables tables(*reference.ring, rng, true);
  const PolyShape shape{LogN, components, batch};
  const LimbSet limbs = LimbSet::range(4 - count, 4);
  auto in = random_poly(*reference.ring, rng, shape, limbs, Domain::coeff, {1, 1, 1, 0});
  auto own = random_poly(*reference.ring, rng, {LogN, 1, batch}, limbs, Domain::eval);
  auto out = garbage_poly(rng, shape, limbs, Domain::eval);
  auto expected = out;
  expected.words = run_on(reference, {out, in}, [](Context& r, const Views& v) {
    r.kernels->ntt(*r.stream, v[0], v[1]);
  })[0];
  for (u32 b = 0; b < batch; ++b)
    std::copy_n(own.host().limb(b, 0, 0), u32(1) << LogN,
                expected.host().limb(b, components - 1, 0));
  OwnLimbs kept = {};
  std::fill(std::begin(kept.component.at), std::end(kept.component.at), u8(kNone));
  kept.component.at[0] = static_cast<u8>(components - 1);
  const PolyView<u32> from = own.host();
  kept.from = {from.data, from.component_stride, from.batch_stride};
  launch_blocks([&](const TransformArgs& a) { column_forward<LogN>(a, kept.component); },
                {(1u << kRow) / kTileColumns<kColumn>, shape.polys(), count}, 1,
                kColumnThreads<kColumn>, arguments(tables, out.host(), in.host()));
  TransformArgs args = arguments(tables, out.host(), out.host());
  args.polys_per_block = args.polys > 1 ? 2 : 1;
  launch_blocks([&](const TransformArgs& a) { row_forward<kRow>(a, kept); },
                {(1u << kColumn) / kTileRows<kRow>, (args.polys + 1) / 2, count}, 1,
                kRowThreads<kRow>, args);
  EXPECT_TRUE(same_words(out, out.words, expected.words));
}

// Places of a pass that stores to several: its limbs lie there as `position` says.
struct SpreadRooms {
  static constexpr u32 kTargets = 2, kRoom = 7;
  SpreadRooms(const PolyShape& shape, u32 count)
      : component(u64(kRoom) << shape.log_n), limb(u64(1) << shape.log_n) {
    args.targets = kTargets, args.parts = 1, args.words[0] = words;
    for (u32 l = 0; l < count; ++l) args.position.at[l] = static_cast<u8>(kRoom - 1 - 2 * l);
    for (u32 t = 0; t < kTargets; ++t) {
      rooms[t].assign(shape.polys() * component, 0);
      args.to[t] = {rooms[t].data(), component, shape.components * component};
    }
  }
  // One turn more has come to its end and left `out`, value i at place(i); empties the rooms.
  template <class Place>
  void expect_turn(const PolyView<u32>& out, const Place& place) {
    EXPECT_EQ(words[kTurnWord], ++turns);
    EXPECT_EQ(words[kDoneWord], 0u);
    std::vector<u32> found(limb);
    const u32 components = out.shape.components;
    for (u32 t = 0; t < kTargets; ++t)
      for (u32 p = 0; p < out.shape.polys(); ++p)
        for (u32 l = 0; l < out.limbs.size(); ++l) {
          u32* from = rooms[t].data() + p * component + args.position.at[l] * limb;
          for (u32 i = 0; i < limb; ++i) found[i] = std::exchange(from[place(i)], 0);
          EXPECT_EQ(std::memcmp(found.data(), out.limb(p / components, p % components, l),
                                sizeof(u32) * limb),
                    0)
              << "turn " << turns << " target " << t << " polynomial " << p << " limb " << l;
        }
  }
  u64 component, limb;
  u32 words[64] = {}, turns = 0;
  std::vector<u32> rooms[kTargets];
  SpreadArgs args = {};
};

// The last pass that stores to several places has there what the plain one has in its one, limb by
// limb and in tiles.
template <u32 LogN>
void expect_spread(u32 components, u32 batch, u32 count, Rng& rng) {
  SCOPED_TRACE(cat("2^", LogN, ", ", count, " limbs; repeat with CRENEL_SEED=", run_seed()));
  constexpr u32 kColumn = kColumnBits<LogN>, kRow = kRowBits<LogN>;
  auto reference = make_context(device::make_ref_device(), LogN, mixed_primes(LogN, 4));
  const Tables tables(*reference.ring, rng);
  const PolyShape shape{LogN, components, batch};
  const LimbSet limbs = LimbSet::range(4 - count, 4);
  auto in = random_poly(*reference.ring, rng, shape, limbs, Domain::coeff), blocked = in;
  auto out = garbage_poly(rng, shape, limbs, Domain::coeff);
  std::vector<InverseScale> scales;
  for (u32 l = 0; l < count; ++l) scales.push_back(tables.scales[limbs[l]]);
  static_cast<void>(spread_limbs);  // has a test of its own
  SpreadRooms rooms(shape, count);
  const auto run = [&](const auto& pass, u32 columns, const TransformArgs& args) {
    launch_blocks(pass, {(1u << kRow) / columns, args.polys, count}, 1, (columns << kColumn) / 16,
                  args);
  };
  const TransformArgs args = arguments(tables, out.host(), in.host());
  run([&](const TransformArgs& a) { column_inverse<LogN, InverseTail::shifted>(a, scales.data()); },
      kTileColumns<kColumn>, args);
  run([&](const TransformArgs& a) { column_inverse_spread<LogN>(a, scales.data(), rooms.args); },
      kSpreadColumns<kColumn>, args);
  rooms.expect_turn(out.host(), [](u32 i) { return i; });
  if constexpr (LogN >= kMinFusedLogN) {
    const auto tiles = [&](const TransformArgs& a) {
      column_inverse_spread_tiles<LogN>(a, scales.data(), rooms.args);
    };
    const auto at = [](u32 i) { return TiledSources<LogN>::at(i >> kRow, i % (1u << kRow)); };
    run(tiles, kTileColumns<kColumn>, args);
    rooms.expect_turn(out.host(), at);
    TransformArgs from = arguments(tables, out.host(), blocked.host());
    from.log_blocked = log_block_columns(LogN);
    for (u64 limb = 0; limb < in.words.size(); limb += u64(1) << LogN)
      for (u32 i = 0; i < 1u << LogN; ++i)
        blocked.words[limb + blocked_place(from.log_blocked, i >> kRow, i % (1u << kRow))] =
            in.words[limb + i];
    run(tiles, kTileColumns<kColumn>, from);
    rooms.expect_turn(out.host(), at);
  }
}

// The pass over rows leaves what it leaves otherwise where blocked_place() says, that over columns
// where TiledSources says: from rows, and in place from what is blocked.
template <u32 LogN>
void expect_tiles(u32 components, u32 count, Rng& rng) {
  SCOPED_TRACE(cat("2^", LogN, "; repeat with CRENEL_SEED=", run_seed()));
  constexpr u32 kColumn = kColumnBits<LogN>, kRow = kRowBits<LogN>;
  auto reference = make_context(device::make_ref_device(), LogN, mixed_primes(LogN, 4));
  const Tables tables(*reference.ring, rng);
  const PolyShape shape{LogN, components, 1};
  const LimbSet limbs = LimbSet::range(4 - count, 4);
  auto values = random_poly(*reference.ring, rng, shape, limbs, Domain::eval);
  auto in = garbage_poly(rng, shape, limbs, Domain::coeff), blocked = in, out = in, tiles = in;
  const auto rows = [&](TransformArgs args, u32 log_blocked) {
    args.log_blocked = log_blocked, args.polys_per_block = 1;
    launch_blocks([&](const TransformArgs& a) { row_inverse<kRow, PlainRows>(a, PlainRows()); },
                  {(1u << kColumn) / kTileRows<kRow>, args.polys, count}, 1, kRowThreads<kRow>,
                  args);
  };
  constexpr u32 kBlocked = log_block_columns(LogN);
  rows(arguments(tables, in.host(), values.host()), 0);
  rows(arguments(tables, blocked.host(), values.host()), kBlocked);
  for (u32 c = 0; c < components; ++c)
    for (u32 l = 0; l < count; ++l)
      for (u32 i = 0; i < 1u << LogN; ++i)
        ASSERT_EQ(
            blocked.host().limb(0, c, l)[blocked_place(kBlocked, i >> kRow, i % (1u << kRow))],
            in.host().limb(0, c, l)[i])
            << "component " << c << " limb " << l << " value " << i;
  std::vector<InverseScale> scales;
  for (u32 l = 0; l < count; ++l) scales.push_back(tables.scales[limbs[l]]);
  const auto run = [&](const auto& pass, const TransformArgs& args) {
    launch_blocks(pass, {(1u << kRow) / kTileColumns<kColumn>, args.polys, count}, 1,
                  kColumnThreads<kColumn>, args);
  };
  run([&](const TransformArgs& a) { column_inverse<LogN, InverseTail::shifted>(a, scales.data()); },
      arguments(tables, out.host(), in.host()));
  const auto tiled = [&](const TransformArgs& a) {
    column_inverse<LogN, InverseTail::tiled>(a, scales.data());
  };
  run(tiled, arguments(tables, tiles.host(), in.host()));
  TransformArgs in_place = arguments(tables, blocked.host(), blocked.host());
  in_place.log_blocked = kBlocked;
  run(tiled, in_place);
  std::vector<u32> found(u64(1) << LogN);
  for (auto* from : {&tiles, &blocked})
    for (u32 c = 0; c < components; ++c)
      for (u32 l = 0; l < count; ++l) {
        const u32* limb = from->host().limb(0, c, l);
        for (u32 i = 0; i < found.size(); ++i)
          found[i] = limb[TiledSources<LogN>::at(i >> kRow, i % (1u << kRow))];
        EXPECT_EQ(std::memcmp(found.data(), out.host().limb(0, c, l), sizeof(u32) << LogN), 0)
            << "component " << c << " limb " << l << (from == &blocked ? " blocked" : "");
      }
}

TEST(TransformOnHost, LeavesTiles) {
  Rng rng = test_rng();
  expect_tiles<14>(1, 2, rng);
  expect_tiles<15>(2, 1, rng);
  expect_tiles<16>(1, 1, rng);
  expect_tiles<17>(1, 1, rng);
}

TEST(TransformOnHost, SpreadsWhatThePassMakes) {
  Rng rng = test_rng();
  expect_spread<10>(2, 1, 3, rng);
  expect_spread<11>(1, 2, 2, rng);
  expect_spread<13>(1, 1, 1, rng);
  expect_spread<14>(1, 1, 2, rng);
  expect_spread<15>(2, 1, 1, rng);
  expect_spread<16>(1, 1, 1, rng);  // in tiles wider than those of the plain pass
  expect_spread<17>(1, 1, 1, rng);
}

TEST(TransformOnHost, ForwardHasTheBitsOfRef) {
  Rng rng = test_rng();
  expect_forward<10>(2, 2, 3, rng);
  expect_forward<11>(1, 3, 2, rng);
  expect_forward<12>(1, 1, 2, rng);
  expect_forward<13>(3, 1, 1, rng);
  expect_forward<14>(2, 1, 1, rng);
  expect_forward<15>(1, 1, 2, rng);
  expect_forward<16>(2, 1, 1, rng);
  expect_forward<17>(1, 1, 2, rng);
}

TEST(TransformOnHost, InverseHasTheBitsOfRef) {
  Rng rng = test_rng();
  expect_inverse(10, 2, 2, 3, run_passes<10>, rng);
  expect_inverse(11, 1, 3, 2, run_passes<11>, rng);
  expect_inverse(12, 1, 1, 2, run_passes<12>, rng);
  expect_inverse(13, 1, 1, 1, run_passes<13>, rng);
  expect_inverse(14, 2, 1, 1, run_passes<14>, rng);
  expect_inverse(15, 1, 1, 1, run_passes<15>, rng);
  expect_inverse(16, 1, 1, 1, run_passes<16>, rng);
  expect_inverse(17, 1, 1, 1, run_passes<17>, rng);
}

}  // namespace
}  // namespace crenel::test
