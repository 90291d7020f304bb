// Launch of base conversions, shared by base_convert, mod_up and divide.
#pragma once

#include "backends/cuda/device/views.cuh"
#include "backends/cuda/host/tables.h"

namespace crenel::backend::cuda {

/// `in` is centred already, or canonical and to be multiplied by the source constants (scaled).
/// With several tables, output component d is that of table d and the input has one component.
void launch_base_convert(device::Stream& stream, const RingTables& ring,
                         const ConversionTables& tables, Poly<const u32> in, Poly<u32> out,
                         const ring::PolyShape& in_shape, bool scaled);

}  // namespace crenel::backend::cuda
