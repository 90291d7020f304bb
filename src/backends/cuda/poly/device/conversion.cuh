// What the kernel of base conversion and its launcher know of one conversion.
#pragma once

#include "backends/cuda/poly/device/views.cuh"

namespace crenel::backend::cuda {

/// One conversion: a run of source limbs to a list of destination limbs.
struct ConversionTable {
  u32 matrix;  ///< offset of [destination][padded sources]: word c has byte c of entry 2^8b, b = 0..3
  u32 target;  ///< offset of [destination]
  u32 scale;   ///< offset of the source constants, times R; read only when the kernel scales
  u32 first;   ///< position of the first source limb in the input
  u32 sources;
  u32 shift;       ///< of the rounded quotient (rns::BaseConversion), 0 where it is kept
  u32 reciprocal;  ///< offset of [padded sources], of the rounded quotient
  i64 rounding;    ///< what its sum of unsigned sources begins with
  u32 padded;      ///< row length of the matrix: sources, the rounded quotient, zeros
  u32 destinations;
  u32 output_limbs;
  LimbBytes source_prime;
  LimbBytes before;  ///< destinations at positions below each output limb

  /// Destinations at positions below `limb` of the output.
  __host__ __device__ __forceinline__ u32 destinations_below(u32 limb) const {
    return limb >= output_limbs ? destinations : before.at[limb];
  }
};

/// Added to a rounded quotient, which then is a byte.
inline constexpr u32 kQuotientBias = 64;

struct alignas(16) ConversionTarget {
  u32 q, q_inv;
  u32 offset;    ///< times R: added to the sum before it is reduced
  u32 position;  ///< in the output component, ascending
};

/// Folded matrices that are kept of a conversion: that of quarter k of a thread's values is
/// multiplied by folded_root(k), so that the first two stages of the transform multiply little.
inline constexpr u32 kQuarters = 4;

/// Words of 16 bytes of a destination's folded matrices: for each of them bytes 0, 1 of all
/// entries, then bytes 2, 3, as products take them.
__host__ __device__ constexpr u32 folded_words(u32 padded) {
  return kQuarters * 2 * ((padded + 4) / 8) * 4;
}

/// A destination of a conversion with the column pass of its results. Folded ones are reduced by an
/// estimate of the quotient (device/folded.cuh).
struct alignas(16) ColumnTarget {
  u32 q, q_inv;
  float scale, shift;    ///< of the estimate
  u32 offset;            ///< that of ConversionTarget
  u16 position;          ///< in the output component, ascending
  u16 prime;             ///< id in the ring
  u32 start[kQuarters];  ///< what the sums of each matrix begin with, below 2^31 + 2^30
};

}  // namespace crenel::backend::cuda
