// Up to four butterfly stages on the 16 values of a thread, in registers.
//
// A thread holds the points whose index differs in four consecutive bits; e, the position in x, is
// the value of those bits. A round of S stages works on the top S of them, so that the other
// 4 - S bits only tell groups apart. `node` is the index of the round's first twiddle in the table
// roots[m + block] of ring::PrimeTables; stage t uses the 2^t entries from node << t on.
//
// Twiddles come in two forms. A Shoup multiplication needs four slots of the multiplier pipe (one
// wide product of two slots, two low products), a Montgomery one five, but a Shoup twiddle is two
// words. So the few twiddles of all stages but the last four are pairs, and the many of the last
// four stages are single words times R. Of these a thread reads four and makes the others: as many
// bytes as a row has itself would come with it otherwise, and push out of L2 what is to stay there.
#pragma once

#include "backends/cuda/modular.cuh"

namespace crenel::backend::cuda {

inline constexpr u32 kPerThread = 16;

/// x c mod q in [0, q), any word x.
__device__ __forceinline__ u32 shoup_mul(u32 x, Pair c, u32 q) {
  return reduce_once(x * c.value - mul_hi_wide(x, c.quotient) * q, q);
}

/// Twiddles of one limb as Shoup pairs.
struct ShoupTwiddles {
  const uint2* table;
  u32 q;

  template <u32 Count>
  struct Stage {
    Pair w[Count];
    u32 q;
    __device__ __forceinline__ u32 times(u32 x, u32 block) const {
      return shoup_mul(x, w[block], q);
    }
  };
  template <u32 Count>
  __device__ __forceinline__ Stage<Count> load(u32 first) const {
    Stage<Count> s;
    s.q = q;
    if constexpr (Count == 1) {
      const uint2 v = __ldg(table + first);
      s.w[0] = Pair{v.x, v.y};
    } else {
#pragma unroll
      for (u32 i = 0; i < Count; i += 2) {
        const uint4 v = __ldg(reinterpret_cast<const uint4*>(table + first + i));
        s.w[i] = Pair{v.x, v.y};
        s.w[i + 1] = Pair{v.z, v.w};
      }
    }
    return s;
  }
};

/// The same for a round whose twiddles were brought to shared memory: entry 2^t + block of `heap`
/// is that of stage t. To be used with node 1.
struct SharedTwiddles {
  const uint2* heap;
  u32 q;

  template <u32 Count>
  __device__ __forceinline__ ShoupTwiddles::Stage<Count> load(u32 first) const {
    ShoupTwiddles::Stage<Count> s;
    s.q = q;
    if constexpr (Count == 1) {
      const uint2 v = heap[first];
      s.w[0] = Pair{v.x, v.y};
    } else {
#pragma unroll
      for (u32 i = 0; i < Count; i += 2) {
        const uint4 v = *reinterpret_cast<const uint4*>(heap + first + i);
        s.w[i] = Pair{v.x, v.y};
        s.w[i + 1] = Pair{v.z, v.w};
      }
    }
    return s;
  }
};

/// Twiddles of the last four stages as words times R, in registers. To be used with node 1. Roots
/// are powers of one, in bit-reversed order: roots[2^t n + j] = roots[2^t n] roots[j] for j < 2^t.
struct LastTwiddles {
  u32 heap[16];
  u32 q, q_inv;

  /// `first` is what the limb's table (host/last_roots.h) has for the round's node, `roots` are the
  /// limb's pairs.
  __device__ __forceinline__ LastTwiddles(const uint4* first, const ShoupTwiddles& roots,
                                          u32 prime_inv)
      : q(roots.q), q_inv(prime_inv) {
    const uint4 v = __ldg(first);
    heap[1] = v.x, heap[2] = v.y, heap[4] = v.z, heap[8] = v.w;
    derive<1>(roots);
    derive<2>(roots);
    derive<4>(roots);
  }

  template <u32 Count>
  struct Stage {
    u32 w[Count];
    u32 q, q_inv;
    __device__ __forceinline__ u32 times(u32 x, u32 block) const {
      return mont_mul(x, w[block], q, q_inv);
    }
  };
  template <u32 Count>
  __device__ __forceinline__ Stage<Count> load(u32 first) const {
    Stage<Count> s;
    s.q = q, s.q_inv = q_inv;
#pragma unroll
    for (u32 i = 0; i < Count; ++i) s.w[i] = heap[first + i];
    return s;
  }

 private:
  // By roots [Count, 2 Count): entry j of each stage that has one.
  template <u32 Count>
  __device__ __forceinline__ void derive(const ShoupTwiddles& roots) {
    const auto w = roots.load<Count>(Count);
#pragma unroll
    for (u32 i = 0; i < Count; ++i)
#pragma unroll
      for (u32 stage = 2 * Count; stage < 16; stage *= 2)
        heap[stage + Count + i] = w.times(heap[stage], i);
  }
};

template <u32 T, class Twiddles, u32 Sets>
__device__ __forceinline__ void forward_stages(u32 (&x)[Sets][kPerThread], const Twiddles& twiddles,
                                               u32 node, u32 q) {
  constexpr u32 kHalf = 8u >> T;  // distance of the pair
  const auto w = twiddles.template load<(1u << T)>(node << T);
#pragma unroll
  for (u32 block = 0; block < (1u << T); ++block)
#pragma unroll
    for (u32 i = 0; i < Sets * kHalf; ++i) {
      u32& a = x[i / kHalf][block * 2 * kHalf + i % kHalf];
      u32& b = x[i / kHalf][block * 2 * kHalf + i % kHalf + kHalf];
      const u32 t = w.times(b, block);
      const u32 s = reduce_once(a, q);
      a = s + t;
      b = s - t + q;
    }
}

/// Cooley-Tukey, S stages, on values of several columns; x in and out in [0, 2q).
template <u32 S, class Twiddles, u32 Sets>
__device__ __forceinline__ void forward_rounds(u32 (&x)[Sets][kPerThread], const Twiddles& twiddles,
                                               u32 node, u32 q) {
  if constexpr (S > 0) forward_stages<0>(x, twiddles, node, q);
  if constexpr (S > 1) forward_stages<1>(x, twiddles, node, q);
  if constexpr (S > 2) forward_stages<2>(x, twiddles, node, q);
  if constexpr (S > 3) forward_stages<3>(x, twiddles, node, q);
}

/// On those of one.
template <u32 S, class Twiddles>
__device__ __forceinline__ void forward_round(u32 (&x)[kPerThread], const Twiddles& twiddles,
                                              u32 node, u32 q) {
  forward_rounds<S>(reinterpret_cast<u32(&)[1][kPerThread]>(x), twiddles, node, q);
}

template <u32 T, class Twiddles>
__device__ __forceinline__ void inverse_stage(u32 (&x)[kPerThread], const Twiddles& twiddles,
                                              u32 node, u32 q) {
  constexpr u32 kHalf = 8u >> T;
  const auto w = twiddles.template load<(1u << T)>(node << T);
#pragma unroll
  for (u32 block = 0; block < (1u << T); ++block)
#pragma unroll
    for (u32 i = 0; i < kHalf; ++i) {
      u32& a = x[block * 2 * kHalf + i];
      u32& b = x[block * 2 * kHalf + i + kHalf];
      const u32 d = a - b + q;
      a = reduce_once(a + b, q);
      b = w.times(d, block);
    }
}

/// Gentleman-Sande, S stages; x in and out in [0, q).
template <u32 S, class Twiddles>
__device__ __forceinline__ void inverse_round(u32 (&x)[kPerThread], const Twiddles& twiddles,
                                              u32 node, u32 q) {
  if constexpr (S > 3) inverse_stage<3>(x, twiddles, node, q);
  if constexpr (S > 2) inverse_stage<2>(x, twiddles, node, q);
  if constexpr (S > 1) inverse_stage<1>(x, twiddles, node, q);
  if constexpr (S > 0) inverse_stage<0>(x, twiddles, node, q);
}

/// The same for the last round of a transform (node 1): its last stage also multiplies everything
/// by a constant of the limb, c = scale, c_root = scale * inverse_roots[1].
template <u32 S, class Twiddles>
__device__ __forceinline__ void inverse_round_scaled(u32 (&x)[kPerThread], const Twiddles& twiddles,
                                                     u32 q, Pair c, Pair c_root) {
  if constexpr (S > 3) inverse_stage<3>(x, twiddles, 1, q);
  if constexpr (S > 2) inverse_stage<2>(x, twiddles, 1, q);
  if constexpr (S > 1) inverse_stage<1>(x, twiddles, 1, q);
#pragma unroll
  for (u32 i = 0; i < 8; ++i) {
    const u32 a = x[i], b = x[i + 8];
    x[i] = shoup_mul(a + b, c, q);
    x[i + 8] = shoup_mul(a - b + q, c_root, q);
  }
}

}  // namespace crenel::backend::cuda
