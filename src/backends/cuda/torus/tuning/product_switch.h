// Shapes of the key switch by products (dev/kernels/README.md, "Rotations by groups").
#pragma once

#include "backends/cuda/torus/kernels/product_switch.cuh"

namespace crenel::backend::cuda::torus {

/// By matrix units: up to kUnitSmallRows rows the small shape.
template <u32 Limbs>
using UnitSmall = UnitShape<Limbs, 1, 1, 8, false>;
template <u32 Limbs>
using UnitLarge = UnitShape<Limbs, 4, 2, 4, true>;
inline constexpr u32 kUnitSmallRows = 16;
/// Blocks a multiprocessor that it is split for.
inline constexpr u32 kUnitBlocksEach = 4;

}  // namespace crenel::backend::cuda::torus
