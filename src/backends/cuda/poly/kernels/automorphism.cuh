// X -> X^e in both domains, as gathers.
#pragma once

#include "backends/cuda/poly/device/views.cuh"
#include "backends/cuda/poly/tuning/elementwise.h"
#include "ring/ring.h"

namespace crenel::backend::cuda {

struct AutomorphismArgs {
  const PrimeConstants* primes;
  Poly<u32> out;
  Poly<const u32> in;
  Poly<const u32> addend;  ///< with Add: belongs to the argument's first addend_components
  u32 addend_components;
  u32 log_n;
  u32 components;
  u32 element;          ///< eval form
  u32 inverse_element;  ///< coefficient form: e^-1 mod 2N
  LimbBytes prime;
};

__device__ __forceinline__ u32 pick(uint4 v, u32 i) {
  const u32 low = i & 1 ? v.y : v.x, high = i & 1 ? v.w : v.z;
  return i & 2 ? high : low;
}

/// Evaluation form. The permutation maps every aligned block of 2^k values onto an aligned block
/// (an odd factor keeps the low bits of an exponent's index apart from the high ones), so a thread
/// reads 16 bytes and permutes them, and a warp reads whole lines.
template <bool Add>
__global__ void __launch_bounds__(kElementThreads)
    automorphism_eval(const __grid_constant__ AutomorphismArgs args) {
  begin_kernel();
  const u32 limb = blockIdx.y, poly = blockIdx.z, n = 1u << args.log_n;
  const u32 b = poly / args.components, c = poly % args.components;
  const u32* from = args.in.limb(b, c, limb, args.log_n);
  u32* to = args.out.limb(b, c, limb, args.log_n);
  const u32 at = 4 * (threadIdx.x + blockIdx.x * kElementThreads);
  if (at >= n) return;
  u32 source[4];
#pragma unroll
  for (u32 u = 0; u < 4; ++u)
    source[u] = ring::galois_eval_source(at + u, args.element, args.log_n);
  uint4 block = load4(from + (source[0] & ~3u));
  if constexpr (Add) {
    if (c < args.addend_components) {
      const u32 q = args.primes[args.prime.at[limb]].q;
      const uint4 o = load4(args.addend.limb(b, c, limb, args.log_n) + (source[0] & ~3u));
      block = make_uint4(add_mod(block.x, o.x, q), add_mod(block.y, o.y, q),
                         add_mod(block.z, o.z, q), add_mod(block.w, o.w, q));
    }
  }
  uint4 v = make_uint4(pick(block, source[0]), pick(block, source[1]), pick(block, source[2]),
                       pick(block, source[3]));
  if constexpr (Add) {
    const u32 q = args.primes[args.prime.at[limb]].q;
    const uint4 o = load4(to + at);
    v = make_uint4(add_mod(v.x, o.x, q), add_mod(v.y, o.y, q), add_mod(v.z, o.z, q),
                   add_mod(v.w, o.w, q));
  }
  store4(to + at, v);
}

/// Coefficient form: a_i goes to i e mod 2N, folded with X^N = -1.
template <bool Add>
__global__ void __launch_bounds__(kElementThreads)
    automorphism_coeff(const __grid_constant__ AutomorphismArgs args) {
  begin_kernel();
  const u32 limb = blockIdx.y, poly = blockIdx.z, n = 1u << args.log_n;
  const u32 b = poly / args.components, c = poly % args.components;
  const u32 q = args.primes[args.prime.at[limb]].q;
  const u32* from = args.in.limb(b, c, limb, args.log_n);
  u32* to = args.out.limb(b, c, limb, args.log_n);
  for (u32 j = threadIdx.x + blockIdx.x * kElementThreads; j < n;
       j += kElementThreads * gridDim.x) {
    // i e = j or j + N mod 2N has the solution s = j e^-1 mod 2N, i = s mod N.
    const u32 s = (j * args.inverse_element) & (2 * n - 1);
    u32 v = from[s & (n - 1)];
    if (Add && c < args.addend_components)
      v = add_mod(v, args.addend.limb(b, c, limb, args.log_n)[s & (n - 1)], q);
    if (s & n) v = lift_once(0u - v, q);
    to[j] = Add ? add_mod(v, to[j], q) : v;
  }
}

}  // namespace crenel::backend::cuda
