// Launch of base conversions in front of a forward transform, shared by mod_up, key_switch, divide.
#pragma once

#include "backends/cuda/poly/host/tables.h"
#include "backends/cuda/poly/host/transform_launch.h"

namespace crenel::backend::cuda {

/// Lets the fused kernel of this ring size use the shared memory that it needs on a GPU.
void allow_convert_columns(u32 log_n, const GpuModel& gpu);

/// Converts `in`, centred, to output limbs [first_limb, first_limb + limbs) at positions from 0 on
/// of args.out and does the column pass in place on them: one kernel where it can, else
/// launch_base_convert and launch_column_forward. `skip` names the limbs that are not converted:
/// per limb the component, or kNone.
void launch_convert_columns(device::Stream& stream, const RingTables& ring,
                            const ConversionTables& tables, Poly<const u32> in,
                            const ring::PolyShape& in_shape, const TransformArgs& args, u32 limbs,
                            const LimbBytes& skip, u32 first_limb = 0);

}  // namespace crenel::backend::cuda
