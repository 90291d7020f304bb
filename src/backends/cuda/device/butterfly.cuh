// Up to four butterfly stages on the 16 values of a thread, in registers.
//
// A thread holds the points whose index differs in four consecutive bits; e, the position in x, is
// the value of those bits. A round of S stages works on the top S of them, so that the other
// 4 - S bits only tell groups apart. `node` is the index of the round's first twiddle in the table
// roots[m + block] of ring::PrimeTables; stage t uses the 2^t entries from node << t on.
#pragma once

#include "backends/cuda/device/modular.cuh"

namespace crenel::backend::cuda {

inline constexpr u32 kPerThread = 16;

template <u32 Count>
__device__ __forceinline__ void load_twiddles(u32 (&w)[8], const u32* p) {
  if constexpr (Count == 1) {
    w[0] = __ldg(p);
  } else if constexpr (Count == 2) {
    const uint2 v = __ldg(reinterpret_cast<const uint2*>(p));
    w[0] = v.x, w[1] = v.y;
  } else {
#pragma unroll
    for (u32 i = 0; i < Count; i += 4) {
      const uint4 v = __ldg(reinterpret_cast<const uint4*>(p + i));
      w[i] = v.x, w[i + 1] = v.y, w[i + 2] = v.z, w[i + 3] = v.w;
    }
  }
}

template <u32 T>
__device__ __forceinline__ void forward_stage(u32 (&x)[kPerThread], const u32* roots, u32 node,
                                              u32 q, u32 q_inv) {
  constexpr u32 kHalf = 8u >> T;  // distance of the pair
  u32 w[8];
  load_twiddles<(1u << T)>(w, roots + (node << T));
#pragma unroll
  for (u32 block = 0; block < (1u << T); ++block)
#pragma unroll
    for (u32 i = 0; i < kHalf; ++i) {
      u32& a = x[block * 2 * kHalf + i];
      u32& b = x[block * 2 * kHalf + i + kHalf];
      const u32 t = mont_mul(b, w[block], q, q_inv);
      const u32 s = reduce_once(a, q);
      a = s + t;
      b = s - t + q;
    }
}

/// Cooley-Tukey, S stages; x in and out in [0, 2q).
template <u32 S>
__device__ __forceinline__ void forward_round(u32 (&x)[kPerThread], const u32* roots, u32 node,
                                              u32 q, u32 q_inv) {
  if constexpr (S > 0) forward_stage<0>(x, roots, node, q, q_inv);
  if constexpr (S > 1) forward_stage<1>(x, roots, node, q, q_inv);
  if constexpr (S > 2) forward_stage<2>(x, roots, node, q, q_inv);
  if constexpr (S > 3) forward_stage<3>(x, roots, node, q, q_inv);
}

template <u32 T>
__device__ __forceinline__ void inverse_stage(u32 (&x)[kPerThread], const u32* roots, u32 node,
                                              u32 q, u32 q_inv) {
  constexpr u32 kHalf = 8u >> T;
  u32 w[8];
  load_twiddles<(1u << T)>(w, roots + (node << T));
#pragma unroll
  for (u32 block = 0; block < (1u << T); ++block)
#pragma unroll
    for (u32 i = 0; i < kHalf; ++i) {
      u32& a = x[block * 2 * kHalf + i];
      u32& b = x[block * 2 * kHalf + i + kHalf];
      const u32 d = a - b + q;
      a = reduce_once(a + b, q);
      b = mont_mul(d, w[block], q, q_inv);
    }
}

/// Gentleman-Sande, S stages; x in and out in [0, q).
template <u32 S>
__device__ __forceinline__ void inverse_round(u32 (&x)[kPerThread], const u32* roots, u32 node,
                                              u32 q, u32 q_inv) {
  if constexpr (S > 3) inverse_stage<3>(x, roots, node, q, q_inv);
  if constexpr (S > 2) inverse_stage<2>(x, roots, node, q, q_inv);
  if constexpr (S > 1) inverse_stage<1>(x, roots, node, q, q_inv);
  if constexpr (S > 0) inverse_stage<0>(x, roots, node, q, q_inv);
}

/// The same for the last round of a transform (node 1): its last stage also multiplies everything
/// by a constant c of the limb, c = scale, c_root = scale * inverse_roots[1], both times R.
template <u32 S>
__device__ __forceinline__ void inverse_round_scaled(u32 (&x)[kPerThread], const u32* roots, u32 q,
                                                     u32 q_inv, u32 c, u32 c_root) {
  if constexpr (S > 3) inverse_stage<3>(x, roots, 1, q, q_inv);
  if constexpr (S > 2) inverse_stage<2>(x, roots, 1, q, q_inv);
  if constexpr (S > 1) inverse_stage<1>(x, roots, 1, q, q_inv);
#pragma unroll
  for (u32 i = 0; i < 8; ++i) {
    const u32 a = x[i], b = x[i + 8];
    x[i] = mont_mul(a + b, c, q, q_inv);
    x[i + 8] = mont_mul(a - b + q, c_root, q, q_inv);
  }
}

}  // namespace crenel::backend::cuda
