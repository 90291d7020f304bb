// Base conversion and the column pass after it, shared by mod_up, key_switch and divide.
#pragma once

#include "backends/cuda/gpu.h"
#include "backends/cuda/poly/host/base_convert_launch.h"
#include "backends/cuda/poly/host/transform_launch.h"

namespace crenel::backend::cuda {

/// Lets the kernels of this ring size use the shared memory that they need, where a GPU has it.
void allow_convert_columns(u32 log_n, const GpuModel& gpu);

/// Sources of conversions, scaled and shifted.
struct Sources {
  Poly<const u32> poly;
  bool tiled = false;  ///< as TiledSources says, else limbs as ever
};
/// Whether launch_convert_columns() takes sources tiled, and wants them so.
bool takes_tiles(device::Stream& stream, const ConversionTables& tables, u32 log_n);

/// Output limbs [first_limb, first_limb + limbs) of `passes.out`, from `in`: converted, and through
/// the column pass but for `own` (transform_launch.h). In one launch where that has an instance, in
/// two otherwise. `early`: the launch after the one may start while it ends.
void launch_convert_columns(device::Stream& stream, const RingTables& ring,
                            const ConversionTables& tables, const Sources& in,
                            const ring::PolyShape& in_shape, const TransformArgs& passes,
                            u32 first_limb, u32 limbs, const LimbBytes& own, bool early);

}  // namespace crenel::backend::cuda
