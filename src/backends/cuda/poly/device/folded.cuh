// Folded conversions: what the first stages of a transform multiply with stands in the matrices,
// and sums are reduced by an estimate of their quotient.
//
// Of the sixteen values of a first round, quarters 0 to 3 in order of their index e, the first
// stage multiplies quarters 2 and 3 by roots[1], the second one quarter 1 by roots[2] and quarter 3
// by roots[3] = roots[1] roots[2]. Four matrices give values times 1, roots[2], roots[1] and
// roots[3]: then the first stage needs no product, and the second one roots[1] for quarter 3 alone.
// Two give values times 1 and roots[1], which takes care of the first stage. The values after it
// are those of any other way.
#pragma once

#include "backends/cuda/poly/device/butterfly.cuh"
#include "backends/cuda/poly/device/conversion.cuh"

namespace crenel::backend::cuda {

/// Index of what the entries of matrix `k` are multiplied by; 0: 1.
constexpr u32 folded_root(u32 k) { return k == 1 ? 2 : k == 2 ? 1 : k; }

/// Upper byte of floats from 2^23 to 2^24.
inline constexpr u32 kFloatExponent = 0x4b;

/// l + 2^16 h, below 2^46 and congruent to a sum plus the excess of ColumnTarget::start, to [0,
/// 2q).
///
/// The quotient is estimated in single precision from the upper bits: the word 0x4b000000 + m is
/// the float 2^23 + m, and of a float from 2^23 on the lower bits are its rounded value again. All
/// constants of that, and the ones added to have no borrow, are in scale, shift and the excess
/// (host/folded_constants.h). `exponent` is kFloatExponent, in a register: ptxas keeps permutations
/// of constants apart.
__device__ __forceinline__ u32 reduce_estimated(u32 l, u32 h, float scale, float shift, u32 q,
                                                u32 exponent) {
  const u32 top = h + (l >> 16);
  const float value = __uint_as_float(__byte_perm(top, exponent, 0x4321));  // 2^23 + (top >> 8)
  const u32 quotient = __float_as_uint(__fmaf_rn(value, scale, shift));
  return l + (h << 16) - quotient * q;
}

/// A butterfly without a product: b in [0, 2q), too.
__device__ __forceinline__ void plain_butterfly(u32& a, u32& b, u32 q) {
  const u32 s = reduce_once(a, q), t = reduce_once(b, q);
  a = s + t;
  b = s - t + q;
}

/// forward_rounds of a transform's first stages (node 1, S from 2 on) on values that come from so
/// many matrices.
template <u32 S, u32 Matrices, class Twiddles, u32 Sets>
__device__ __forceinline__ void folded_round(u32 (&x)[Sets][kPerThread], const Twiddles& twiddles,
                                             u32 q) {
#pragma unroll
  for (u32 i = 0; i < Sets * 8; ++i) plain_butterfly(x[i / 8][i % 8], x[i / 8][i % 8 + 8], q);
  if constexpr (Matrices == 4) {
    const auto w = twiddles.template load<1>(1);
#pragma unroll
    for (u32 i = 0; i < Sets * 4; ++i) plain_butterfly(x[i / 4][i % 4], x[i / 4][i % 4 + 4], q);
#pragma unroll
    for (u32 i = 0; i < Sets * 4; ++i) {
      u32 &a = x[i / 4][8 + i % 4], &b = x[i / 4][12 + i % 4];
      const u32 s = reduce_once(a, q), t = w.times(b, 0);
      a = s + t;
      b = s - t + q;
    }
  } else {
    forward_stages<1>(x, twiddles, 1, q);
  }
  if constexpr (S > 2) forward_stages<2>(x, twiddles, 1, q);
  if constexpr (S > 3) forward_stages<3>(x, twiddles, 1, q);
}

}  // namespace crenel::backend::cuda
