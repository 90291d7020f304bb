// PolyView to kernel arguments.
#pragma once

#include "backends/cuda/poly/device/views.cuh"
#include "device/poly/kernels.h"

namespace crenel::backend::cuda {

template <class Word>
Poly<Word> poly(const ring::PolyView<Word>& v) {
  return {v.data, v.component_stride, v.batch_stride};
}

/// Stride 0 along axes of one entry, so that an operand broadcasts.
template <class Word>
Poly<Word> broadcast_poly(const ring::PolyView<Word>& v) {
  return {v.data, v.shape.components == 1 ? 0 : v.component_stride,
          v.shape.batch == 1 ? 0 : v.batch_stride};
}

inline KeyPoly key_poly(const device::KeyView& key, u32 first_digit) {
  const auto& p = key.pairs;
  return {p.data, key.slot, key.entry(first_digit) * p.batch_stride, p.component_stride,
          p.batch_stride};
}

inline LimbBytes prime_bytes(const rns::LimbSet& limbs) {
  LimbBytes bytes = {};
  for (u32 l = 0; l < limbs.size(); ++l) bytes.at[l] = static_cast<u8>(limbs[l]);
  return bytes;
}

/// Position in `in` of every limb of `limbs`, kNone where it has none.
inline LimbBytes position_bytes(const rns::LimbSet& limbs, const rns::LimbSet& in) {
  LimbBytes bytes = {};
  const bool same = limbs == in;
  for (u32 l = 0; l < limbs.size(); ++l) {
    const int at = same ? static_cast<int>(l) : in.find(limbs[l]);
    bytes.at[l] = static_cast<u8>(at < 0 ? kNone : at);
  }
  return bytes;
}

}  // namespace crenel::backend::cuda
