// Modular arithmetic of one 32-bit word for q < 2^31. Montgomery radix R = 2^32.
#pragma once

#include "backends/cuda/ptx.cuh"

namespace crenel::backend::cuda {

/// A Shoup constant: value and floor(value R / q).
struct Pair {
  u32 value, quotient;
};

/// Constants of one prime.
struct alignas(16) PrimeConstants {
  u32 q;
  u32 q_inv;        ///< q^-1 mod R
  u32 r;            ///< R mod q
  u32 r2;           ///< R^2 mod q
  Pair n_inv;       ///< N^-1
  Pair n_inv_root;  ///< N^-1 inverse_roots[1]
};

/// [0, 2q) to [0, q): min(x, x - q) of wrapped words, one VIADDMNMX.
__device__ __forceinline__ u32 reduce_once(u32 x, u32 q) { return __viaddmin_u32(x, 0u - q, x); }
/// (-q, q) as a wrapped word to [0, q).
__device__ __forceinline__ u32 lift_once(u32 x, u32 q) { return __viaddmin_u32(x, q, x); }

__device__ __forceinline__ u32 add_mod(u32 a, u32 b, u32 q) { return reduce_once(a + b, q); }
__device__ __forceinline__ u32 sub_mod(u32 a, u32 b, u32 q) { return lift_once(a - b, q); }

/// a b R^-1 mod q in [0, q), for a b < q R (one factor below q suffices).
__device__ __forceinline__ u32 mont_mul(u32 a, u32 b, u32 q, u32 q_inv) {
  u32 lo, hi;
  mul_wide(a, b, lo, hi);
  return lift_once(hi - mul_hi_wide(lo * q_inv, q), q);
}

/// x R^-1 mod q in [0, q), for x < q R.
__device__ __forceinline__ u32 mont_reduce(u64 x, u32 q, u32 q_inv) {
  const u32 hi = static_cast<u32>(x >> 32);
  return lift_once(hi - mul_hi_wide(static_cast<u32>(x) * q_inv, q), q);
}

/// Any x < 2^64 to a congruent value below q R: hi r + lo <= (R - 1)(q - 1) + R - 1 < q R.
__device__ __forceinline__ u64 fold(u64 x, u32 r) {
  return mad_wide(static_cast<u32>(x >> 32), r, x & 0xffffffffu);
}

/// [0, 2 q R) to [0, q R).
__device__ __forceinline__ u64 fold_high(u64 x, u32 q) {
  const u32 high = reduce_once(static_cast<u32>(x >> 32), q);
  return u64(high) << 32 | static_cast<u32>(x);
}

/// Any x < 2^64 to x mod q.
__device__ __forceinline__ u32 reduce_wide(u64 x, const PrimeConstants& m) {
  return mont_mul(mont_reduce(fold(x, m.r), m.q, m.q_inv), m.r2, m.q, m.q_inv);
}

/// a b mod q for any words with a b < q R.
__device__ __forceinline__ u32 mul_mod(u32 a, u32 b, const PrimeConstants& m) {
  return mont_mul(mont_mul(a, b, m.q, m.q_inv), m.r2, m.q, m.q_inv);
}

/// x in [0, q), q odd, to its representative nearest to zero plus (q - 1) / 2: in [0, q) again.
__device__ __forceinline__ u32 centre_up(u32 x, u32 q) { return reduce_once(x + (q >> 1), q); }

}  // namespace crenel::backend::cuda
