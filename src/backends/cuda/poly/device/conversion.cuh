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

}  // namespace crenel::backend::cuda
