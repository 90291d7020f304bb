// Inner sums of linear transforms: products of baby steps with plaintexts, for baby steps in memory
// and for those that a hoisted transform makes on the way.
#pragma once

#include "backends/cuda/poly/device/permutation.cuh"
#include "backends/cuda/poly/device/plain_sums.cuh"
#include "backends/cuda/poly/tuning/elementwise.h"
#include "ring/ring.h"

namespace crenel::backend::cuda {

struct PlainSumArgs {
  const PrimeConstants* primes;
  PlainArgs plain;
  u32 log_n;
  u32 components;
  u32 steps;
  LimbBytes prime;
  Poly<const u32> in[kLaunchBabies];
  GridColumn column[kLaunchBabies];
};

struct HoistedStep {
  KeyPoly key;
  u32 element;  ///< 1: no rotation and, unless all are turned, no key
  u32 form;     ///< in HoistedArgs::in_key
  GridColumn column;
};

struct HoistedArgs {
  const PrimeConstants* primes;
  PlainArgs plain;
  Poly<const u32> digits;
  Poly<const u32> b;
  Poly<const u32> a;
  u32 log_n;
  u32 count;   ///< digits
  u32 window;  ///< limbs of b and a
  u32 turned;  ///< every step has a key: there is no a
  u32 steps;
  LimbBytes prime;
  LimbBytes in_key[kLaunchKeyForms];  ///< position of the limb in the keys of each form
  u32 special[rns::kMaxLimbs];
  HoistedStep step[kLaunchBabies];
};

/// Grid: x tiles of values, y batch entries times pairs of components, z limbs.
template <u32 Giants, bool Full>
__global__ void __launch_bounds__(kPlainThreads, kPlainBlocksPerSm)
    plain_sums(const __grid_constant__ PlainSumArgs args) {
  begin_kernel();
  using Sums = GiantSums<Giants, Full>;
  constexpr u32 kValues = Sums::kValues;
  const u32 limb = blockIdx.z, pairs = (args.components + 1) / 2;
  const u32 batch = blockIdx.y / pairs, first = 2 * (blockIdx.y % pairs);
  const u32 at = kValues * (threadIdx.x + blockIdx.x * kPlainThreads);
  if (at >= (1u << args.log_n)) return;
  const bool two = first + 1 < args.components;
  const PrimeConstants m = args.primes[args.prime.at[limb]];
  const u64 policy = streaming_policy();
  Sums sums(args.plain, limb, args.log_n, at);
  for (u32 s = 0; s < args.steps; ++s) {
    sums.fetch(args.plain, args.column[s], policy);
    const auto x0 = Words<kValues>::load(args.in[s].limb(batch, first, limb, args.log_n) + at);
    Words<kValues> x1 = {};
    if (two) x1 = Words<kValues>::load(args.in[s].limb(batch, first + 1, limb, args.log_n) + at);
    u32 x[2][kValues];
#pragma unroll
    for (u32 u = 0; u < kValues; ++u) x[0][u] = x0.at[u], x[1][u] = x1.at[u];
    sums.add(args.column[s], x, m.q);
  }
  sums.store(args.plain, batch, first, two ? 2 : 1, limb, args.log_n, at, m.r2, m);
}

/// Adds digits_d key_(d,c) at `from` for Count digits; the sums are folded after every second one.
template <u32 Count, u32 Values>
__device__ __forceinline__ void add_digits(u64 (&sum)[2][Values], const HoistedArgs& args,
                                           const HoistedStep& step, const u32* digit,
                                           const u32* key, u32 q, u64 policy) {
  // All loads, then all products: no branch between them, or the first would wait alone.
  Words<Values> x[Count], k[2][Count];
#pragma unroll
  for (u32 d = 0; d < Count; ++d) {
    k[0][d] = Words<Values>::load_once(key + d * step.key.digit_stride, policy);
    k[1][d] = Words<Values>::load_once(key + d * step.key.digit_stride + step.key.component_stride,
                                       policy);
    x[d] = Words<Values>::load(digit + d * args.digits.component_stride);
  }
#pragma unroll
  for (u32 d = 0; d < Count; ++d)
#pragma unroll
    for (u32 c = 0; c < 2; ++c)
#pragma unroll
      for (u32 u = 0; u < Values; ++u) {
        sum[c][u] = mad_wide(x[d].at[u], k[c][d].at[u], sum[c][u]);
        if (d % 2 == 1) sum[c][u] = fold_high(sum[c][u], q);
      }
}

/// sum_d digits_d key_(d,c) at `from`: below q R plus one product. Digits 0: args.count of them.
template <u32 Digits, u32 Values>
__device__ __forceinline__ void inner_product(u64 (&sum)[2][Values], const HoistedArgs& args,
                                              const HoistedStep& step, const u32* digit,
                                              const u32* key, u32 q, u64 policy) {
  if constexpr (Digits != 0) {
    add_digits<Digits>(sum, args, step, digit, key, q, policy);
  } else {
    for (u32 pair = args.count / 2; pair != 0; --pair) {
      add_digits<2>(sum, args, step, digit, key, q, policy);
      digit += 2 * args.digits.component_stride;
      key += 2 * step.key.digit_stride;
    }
    if (args.count % 2 != 0) add_digits<1>(sum, args, step, digit, key, q, policy);
  }
}

/// A thread makes its values of one baby step after the other, in the order of the step's argument,
/// permutes them and multiplies them with the plaintexts of every giant step. Grid: x tiles of
/// values, y batch entries, z limbs: what a limb's blocks read again (digits, b) stays in L2. Batch
/// entries do not meet the keys there (dev/kernels/README.md, b17): shared_sums is for them.
template <u32 Giants, bool Full, u32 Digits>
__global__ void __launch_bounds__(kPlainThreads, kHoistedBlocksPerSm<Giants, Digits>)
    hoisted_sums(const __grid_constant__ HoistedArgs args) {
  begin_kernel();
  using Sums = GiantSums<Giants, Full>;
  constexpr u32 kValues = Sums::kValues;
  const u32 limb = blockIdx.z, batch = blockIdx.y, id = args.prime.at[limb];
  const u32 at = kValues * (threadIdx.x + blockIdx.x * kPlainThreads);
  // Addresses that stand in memory are read once a block: every step would wait for its own.
  __shared__ const u32* keys[kLaunchBabies];
  if (threadIdx.x < args.steps && (args.turned || args.step[threadIdx.x].element != 1))
    keys[threadIdx.x] = args.step[threadIdx.x].key.words() +
                        (u64(args.in_key[args.step[threadIdx.x].form].at[limb]) << args.log_n);
  __syncthreads();
  if (at >= (1u << args.log_n)) return;
  const PrimeConstants m = args.primes[id];
  const u64 policy = streaming_policy();
  const bool lifted = limb < args.window;
  const u32 special = args.special[limb];
  Sums sums(args.plain, limb, args.log_n, at);
  for (u32 s = 0; s < args.steps; ++s) {
    const HoistedStep& step = args.step[s];
    const bool has_key = args.turned || step.element != 1;
    if (!has_key && !lifted) continue;
    const u32 source = ring::galois_eval_source(at, step.element, args.log_n);
    const u32 from = source & ~(kValues - 1);
    sums.fetch(args.plain, step.column, policy);
    Words<kValues> b = {}, a = {};
    if (lifted) b = Words<kValues>::load(args.b.limb(batch, 0, limb, args.log_n) + from);
    if (!has_key) a = Words<kValues>::load(args.a.limb(batch, 0, limb, args.log_n) + from);
    u64 sum[2][kValues] = {};
    if (has_key)
      inner_product<Digits>(sum, args, step, args.digits.limb(batch, 0, limb, args.log_n) + from,
                            keys[s] + from, m.q, policy);
    // At most one digit was not folded: with the lift two products.
    if (lifted) {
#pragma unroll
      for (u32 u = 0; u < kValues; ++u) sum[0][u] = mad_wide(special, b.at[u], sum[0][u]);
    }
    if (!has_key) {
#pragma unroll
      for (u32 u = 0; u < kValues; ++u) sum[1][u] = mad_wide(special, a.at[u], sum[1][u]);
    }
    u32 x[2][kValues];
#pragma unroll
    for (u32 c = 0; c < 2; ++c) {
#pragma unroll
      for (u32 u = 0; u < kValues; ++u)
        x[c][u] = mont_reduce(fold_high(sum[c][u], m.q), m.q, m.q_inv);
      permute<kValues>(x[c], source, step.element);
    }
    sums.add(step.column, x, m.q);
  }
  // The baby steps came divided by R: R^3 / R restores them and the division at the end.
  const u32 scale = mont_mul(m.r2, m.r2, m.q, m.q_inv);
  sums.store(args.plain, batch, 0, 2, limb, args.log_n, at, scale, m);
}

}  // namespace crenel::backend::cuda
