// Launch of base conversions, shared by base_convert, mod_up and divide.
#pragma once

#include "backends/cuda/poly/host/tables.h"
#include "backends/cuda/poly/kernels/base_convert.cuh"

namespace crenel::backend::cuda {

/// What kernels of base conversion ask for, but for the destinations of a block.
ConvertArgs convert_args(const RingTables& ring, const ConversionTables& tables, Poly<const u32> in,
                         Poly<u32> out, const ring::PolyShape& in_shape, u32 first_limb,
                         u32 last_limb);

/// `in` is scaled and shifted already (base_convert.cuh), or canonical and to be multiplied by the
/// source constants (scaled).
/// With several tables, output component d is that of table d and the input has one component. Only
/// output limbs [first_limb, last_limb) are made, at positions from 0 on.
void launch_base_convert(device::Stream& stream, const RingTables& ring,
                         const ConversionTables& tables, Poly<const u32> in, Poly<u32> out,
                         const ring::PolyShape& in_shape, bool scaled, u32 first_limb = 0,
                         u32 last_limb = rns::kMaxLimbs);

}  // namespace crenel::backend::cuda
