// How polynomials travel to kernels: pointer, strides, and byte lists indexed by limb position.
#pragma once

#include "backends/cuda/modular.cuh"
#include "rns/limb_set.h"

namespace crenel::backend::cuda {

/// What PolyView is on the host, without the limbs.
template <class Word>
struct Poly {
  Word* data;
  u64 component_stride;
  u64 batch_stride;

  __device__ __forceinline__ Word* limb(u32 batch, u32 component, u32 position, u32 log_n) const {
    return data + batch * batch_stride + component * component_stride + (u64(position) << log_n);
  }
};

/// device::KeyView from the first digit in use on, [digit][b, a][limb][N].
struct KeyPoly {
  const u32* data;         ///< where `slot` is null
  const u32* const* slot;  ///< where the address stands
  u64 first;               ///< words before the first digit in use
  u64 component_stride;
  u64 digit_stride;

  __device__ __forceinline__ const u32* words() const {
    return (slot == nullptr ? data : *slot) + first;
  }
};

/// One byte a limb: prime ids, or positions of the limbs in another polynomial.
struct LimbBytes {
  u8 at[rns::kMaxLimbs];
};
inline constexpr u32 kNone = 255;

}  // namespace crenel::backend::cuda
