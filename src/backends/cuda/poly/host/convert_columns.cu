#include <algorithm>

#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/convert_columns.h"
#include "backends/cuda/poly/kernels/convert_columns.cuh"

namespace crenel::backend::cuda {
namespace {

struct Instance {
  void (*kernel)(ConvertColumnsArgs) = nullptr;
  std::size_t shared_bytes = 0;
};

template <u32 LogN, u32 Sources>
Instance instance() {
  return {convert_columns<LogN, Sources>, sizeof(typename FusedTile<LogN, Sources>::Memory)};
}

template <u32 LogN>
Instance instance_of(u32 sources) {
  switch (sources) {
    case 4:
      return instance<LogN, 4>();
    case 8:
      return instance<LogN, 8>();
    case 12:
      return instance<LogN, 12>();
    case 16:
      return instance<LogN, 16>();
    default:
      return {};
  }
}

// No kernel where none was compiled.
Instance instance_of(u32 log_n, u32 sources) {
  switch (log_n) {
    case 14:
      return instance_of<14>(sources);
    case 15:
      return instance_of<15>(sources);
    case 16:
      return instance_of<16>(sources);
    case 17:
      return instance_of<17>(sources);
    default:
      return {};
  }
}

}  // namespace

void allow_convert_columns(u32 log_n, const GpuModel& gpu) {
  if (gpu.index == kDry) return;
  const DeviceGuard guard(gpu.index);
  for (u32 sources = 4; sources <= kMaxFusedSources; sources += 4) {
    const Instance fused = instance_of(log_n, sources);
    if (fused.kernel == nullptr || fused.shared_bytes > gpu.shared_bytes) continue;
    CRENEL_CUDA_TRY(cudaFuncSetAttribute(fused.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(fused.shared_bytes)));
  }
}

void launch_convert_columns(device::Stream& stream, const RingTables& ring,
                            const ConversionTables& tables, Poly<const u32> in,
                            const ring::PolyShape& in_shape, const TransformArgs& passes,
                            u32 first_limb, u32 limbs, const LimbBytes& own) {
  const CudaStream& queue = cuda_stream(stream);
  const Instance fused = instance_of(in_shape.log_n, padded_sources(tables.max_sources));
  const bool wanted =
      queue.on(Optimisation::convert_columns) && queue.on(Optimisation::held_sources);
  if (!wanted || fused.kernel == nullptr || fused.shared_bytes > queue.model().shared_bytes) {
    launch_base_convert(stream, ring, tables, in, passes.out, in_shape, false, first_limb,
                        first_limb + limbs);
    launch_column_forward(stream, passes, limbs, own);
    return;
  }
  ConvertColumnsArgs args = {};
  args.convert =
      convert_args(ring, tables, in, passes.out, in_shape, first_limb, first_limb + limbs);
  args.roots = ring.forward.pairs;
  args.prime = passes.prime;
  const u32 tiles = in_shape.ring_dim() / kFusedValues, rows = in_shape.polys() * tables.count;
  const u32 destinations = std::min(tables.max_destinations, limbs);
  const u32 most =
      std::min(kFusedMaxOutputs, static_cast<u32>(queue.tuned(Tunable::conversion_outputs)));
  args.convert.outputs =
      queue.on(Optimisation::conversion_shape)
          ? convert_outputs(tiles * rows, destinations, queue.processors(), kFusedSetup, most)
          : kConvertPlainOutputs;
  const dim3 grid(tiles, rows, divide_up(destinations, args.convert.outputs));
  const auto cost = [&] {
    return traffic::convert_columns(tables, in_shape.log_n, in_shape.polys(), first_limb,
                                    first_limb + limbs, args.convert.outputs, kFusedValues);
  };
  launch(stream, cost, fused.kernel, grid, kFusedThreads, fused.shared_bytes, args);
}

}  // namespace crenel::backend::cuda
