// What the kernel of base conversion and its launcher know of one conversion.
#pragma once

#include "backends/cuda/poly/device/views.cuh"

namespace crenel::backend::cuda {

/// One conversion: a run of source limbs to a list of destination limbs.
struct ConversionTable {
  u32 matrix;  ///< offset of [destination][padded sources], centred, times R
  u32 scale;   ///< offset of the source constants, times R; read only when the kernel scales
  u32 first;   ///< position of the first source limb in the input
  u32 sources;
  u32 padded;    ///< row length of the matrix
  u32 quotient;  ///< offset among the matrices of the rounded quotient's constants, where shift != 0:
                 ///< [padded] reciprocals, [destination] -D, centred, times R
  u32 shift;
  u32 destinations;
  u32 output_limbs;
  LimbBytes source_prime;
  LimbBytes prime;     ///< of each destination
  LimbBytes position;  ///< of each destination in the output component, ascending
  LimbBytes before;    ///< destinations at positions below each output limb

  /// Destinations at positions below `limb` of the output.
  __host__ __device__ __forceinline__ u32 destinations_below(u32 limb) const {
    return limb >= output_limbs ? destinations : before.at[limb];
  }
};

}  // namespace crenel::backend::cuda
