// CUDA's inverse transform in one launch on the host: blocks that wait for each other are threads
// that do, with the bits of ref. What is left for a GPU to show is that launches are right.
#include "support/host_block.h"

//
#include "backends/cuda/poly/kernels/ntt_inverse.cuh"
#include "support/chains.h"
#include "support/same.h"

namespace crenel::test {
namespace {

using namespace backend::cuda;

backend::cuda::Pair shoup(u32 x, u32 q) {
  const auto c = math::make_shoup<u32>(x, q);
  return {c.value, c.quotient};
}

// Tables of a ring, as the backend uploads them, and scales of the last stage.
struct Tables {
  explicit Tables(const ring::Ring& ring, Rng& rng) {
    for (u32 id = 0; id < ring.prime_count(); ++id) {
      const ring::PrimeTables& p = ring.prime(id);
      const math::Modulus<u32>& m = p.modulus;
      const auto times = [&](u32 a, u32 b) { return math::mul_mod<u32>(a, b, m); };
      const u32 root = p.inverse_roots[1].value, n_inv = p.n_inv.value;
      primes.push_back(
          {m.q, m.q_inv, m.r, m.r2, shoup(n_inv, m.q), shoup(times(n_inv, root), m.q)});
      for (const auto& r : p.inverse_roots) words.push_back(times(r.value, m.r));
      for (u32 i = 0; i < ring.ring_dim() / 16; ++i)
        pairs.push_back({p.inverse_roots[i].value, p.inverse_roots[i].quotient});
      factors.push_back(static_cast<u32>(rng() % m.q));
      const u32 c = times(factors.back(), n_inv);
      scales.push_back({shoup(c, m.q), shoup(times(c, root), m.q)});
    }
  }
  std::vector<PrimeConstants> primes;
  std::vector<u32> words, factors;
  std::vector<uint2> pairs;
  std::vector<InverseScale> scales;
};

struct HostCase {
  PolyShape shape;
  u32 limbs, ahead, blocks;
};

TransformArgs arguments(const Tables& tables, const PolyView<u32>& out, const PolyView<u32>& in) {
  TransformArgs args = {};
  args.primes = tables.primes.data(), args.roots = tables.pairs.data();
  args.last_roots = tables.words.data();
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

// Both tails, the second in place, with the same counters.
void expect_inverse(const HostCase& c, Rng& rng) {
  constexpr u32 kLogN = kMinJointLogN;
  auto reference = make_context(device::make_ref_device(), kLogN, mixed_primes(kLogN, 6));
  const ring::Ring& ring = *reference.ring;
  const Tables tables(ring, rng);
  const LimbSet limbs = LimbSet::range(1, 1 + c.limbs);
  const auto in = random_poly(ring, rng, c.shape, limbs, Domain::eval, {1, 1, 1, 0});
  const auto expected =
      run_on(reference, {garbage_poly(rng, c.shape, limbs, Domain::coeff), in},
             [](Context& r, const Views& v) { r.kernels->intt(*r.stream, v[0], v[1]); })[0];
  std::vector<u32> progress(kProgressWords);
  const JointWork work = {
      progress.data(), {c.limbs * c.shape.polys(), c.ahead}, joint_tiles(kLogN)};
  auto input = in;
  const InverseScale* scales = nullptr;
  auto out = garbage_poly(rng, c.shape, limbs, Domain::coeff);
  launch_together(joint_inverse<kLogN, InverseTail::canonical>, c.blocks,
                  kRowThreads<kRowBits<kLogN>>, arguments(tables, out.host(), input.host()), scales,
                  work);
  EXPECT_TRUE(same_words(out, out.words, expected));
  EXPECT_EQ(input.words, in.words);
  EXPECT_EQ(progress, std::vector<u32>(kProgressWords));

  std::vector<InverseScale> of_limbs;
  for (u32 l = 0; l < limbs.size(); ++l) of_limbs.push_back(tables.scales[limbs[l]]);
  scales = of_limbs.data();
  launch_together(joint_inverse<kLogN, InverseTail::shifted>, c.blocks,
                  kRowThreads<kRowBits<kLogN>>, arguments(tables, input.host(), input.host()),
                  scales, work);
  EXPECT_EQ(progress, std::vector<u32>(kProgressWords));
  auto shifted = out;
  shifted.words = expected;
  for (u32 b = 0; b < c.shape.batch; ++b)
    for (u32 k = 0; k < c.shape.components; ++k)
      for (u32 l = 0; l < limbs.size(); ++l)
        for (u64 i = 0; i < ring.ring_dim(); ++i) {
          const auto& m = ring.modulus(limbs[l]);
          u32& x = shifted.host().limb(b, k, l)[i];
          x = math::add_mod<u32>(math::mul_mod<u32>(x, tables.factors[limbs[l]], m), m.q / 2, m.q);
          ASSERT_EQ(input.host().limb(b, k, l)[i], x)
              << "batch " << b << " component " << k << " limb " << l << " value " << i
              << "; repeat with CRENEL_SEED=" << run_seed();
        }
}

TEST(JointInverseOnHost, BlocksThatWaitForEachOther) {
  Rng rng = test_rng();
  const PolyShape one{kMinJointLogN, 1, 1}, several{kMinJointLogN, 2, 2};
  // one block alone; fewer than tiles; columns first of all
  for (const HostCase& c : {HostCase{one, 1, 1, 1}, HostCase{one, 3, 1, 5},
                            HostCase{several, 2, 3, 4}, HostCase{several, 1, 4, 7}}) {
    SCOPED_TRACE(cat(c.limbs, " limbs, ", c.ahead, " ahead, ", c.blocks, " blocks"));
    expect_inverse(c, rng);
  }
}

TEST(JointInverseOrder, RowsOfEveryLimbComeBeforeItsColumns) {
  for (u32 units = 1; units < 40; ++units)
    for (u32 ahead = 1; ahead <= units; ++ahead) {
      const JointOrder order{units, ahead};
      std::vector<u32> rows(units), columns(units);
      for (u32 s = 0; s < 2 * units; ++s) {
        const auto [unit, is_rows] = order.step(s);
        ASSERT_LT(unit, units);
        ASSERT_EQ(s < ahead, is_rows && unit < ahead);
        ++(is_rows ? rows : columns)[unit];
        ASSERT_LE(columns[unit], rows[unit]) << units << " units, " << ahead << " ahead";
      }
      ASSERT_EQ(rows, std::vector<u32>(units, 1));
      ASSERT_EQ(columns, std::vector<u32>(units, 1));
    }
}

}  // namespace
}  // namespace crenel::test
