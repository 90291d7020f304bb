// out = sum_k s_k in_k + constant.
#pragma once

#include "backends/cuda/poly/device/views.cuh"
#include "backends/cuda/poly/tuning/elementwise.h"
#include "backends/cuda/poly/tuning/plain_sums.h"

namespace crenel::backend::cuda {

struct CombinationArgs {
  const PrimeConstants* primes;
  Poly<u32> out;
  u32 log_n;
  u32 components;
  u32 terms;
  u32 constant;  ///< where its words begin, as for a term; kNoConstant: there is none
  LimbBytes prime;
  struct Term {
    Poly<const u32> in;
    u32 first;   ///< its words begin here
    u32 halves;  ///< 0: a word a limb; 1: one for each half of the values
  } term[kCombinationTerms];
  u32 constant_halves;
  u32 words[kCombinationWords];
};
inline constexpr u32 kNoConstant = ~0u;

/// Grid: x tiles of 4 * kElementThreads values, y limbs, z polynomials. A thread has read all
/// inputs before it writes, so `out` may be one of them.
__global__ void __launch_bounds__(kElementThreads)
    linear_combination(const __grid_constant__ CombinationArgs args) {
  begin_kernel();
  const u32 limb = blockIdx.y, poly = blockIdx.z, n = 1u << args.log_n;
  const u32 b = poly / args.components, c = poly % args.components;
  const u32 at = 4 * (threadIdx.x + blockIdx.x * kElementThreads);
  if (at >= n) return;
  const PrimeConstants m = args.primes[args.prime.at[limb]];
  const u32 half = at >= n / 2;
  const auto word = [&](u32 first, u32 halves) {
    return args.words[first + (limb << halves) + (half & halves)];
  };
  const u32 constant = args.constant == kNoConstant ? 0 : word(args.constant, args.constant_halves);
  u64 sum[4];
#pragma unroll
  for (u32 u = 0; u < 4; ++u) sum[u] = constant;
  for (u32 first = 0; first < args.terms; first += kCombinationInFlight) {
    uint4 x[kCombinationInFlight];
#pragma unroll
    for (u32 j = 0; j < kCombinationInFlight; ++j) {
      if (first + j >= args.terms) break;
      x[j] = load4(args.term[first + j].in.limb(b, c, limb, args.log_n) + at);
    }
#pragma unroll
    for (u32 j = 0; j < kCombinationInFlight; ++j) {
      if (first + j >= args.terms) break;
      const u32 s = word(args.term[first + j].first, args.term[first + j].halves);
      sum[0] = mad_wide(x[j].x, s, sum[0]);
      sum[1] = mad_wide(x[j].y, s, sum[1]);
      sum[2] = mad_wide(x[j].z, s, sum[2]);
      sum[3] = mad_wide(x[j].w, s, sum[3]);
      // Two products on top of a folded sum stay below 2 q R, also those on top of the constant.
      if (j % 2 == 1) {
#pragma unroll
        for (u32 u = 0; u < 4; ++u) sum[u] = fold_high(sum[u], m.q);
      }
    }
  }
  u32 v[4];
#pragma unroll
  for (u32 u = 0; u < 4; ++u)
    v[u] = mont_mul(mont_reduce(fold_high(sum[u], m.q), m.q, m.q_inv), m.r2, m.q, m.q_inv);
  store4(args.out.limb(b, c, limb, args.log_n) + at, make_uint4(v[0], v[1], v[2], v[3]));
}

}  // namespace crenel::backend::cuda
