#include <algorithm>

#include "backends/cuda/host/convert_columns.h"
#include "backends/cuda/kernels/convert_columns.cuh"
#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/base_convert_launch.h"
#include "backends/cuda/poly/kernels/base_convert.cuh"

namespace crenel::backend::cuda {
namespace {

u32 shared_sources(const ConversionTables& tables) {
  return std::min(padded_sources(tables.max_sources), kConvertColumnsShared);
}

template <u32 LogN>
void allow_of(const GpuModel& gpu) {
  if (gpu.index == kDry) return;
  const DeviceGuard guard(gpu.index);
  for (auto* kernel : {convert_columns<LogN, false>, convert_columns<LogN, true>})
    CRENEL_CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(kConvertColumnsMostBytes)));
}

// Two blocks of the largest size fit on a multiprocessor; each also takes 1 KiB for the system, and
// a block alone may ask for all but 1 KiB.
bool enough_shared_memory(const GpuModel& gpu) {
  return 2 * (kConvertColumnsMostBytes + 1024) <= gpu.shared_bytes + 1024;
}

bool covers(u32 log_n) { return kConvertColumnsMinLogN <= log_n && log_n <= kMaxLogN; }

// What the fused kernel is made for.
bool fused(const GpuModel& gpu, u32 log_n, const ConversionTables& tables) {
  return kConvertColumns && covers(log_n) && !tables.fold_often &&
         tables.max_sources <= kConvertColumnsMaxSources && enough_shared_memory(gpu);
}

// Most destinations of a table among the output limbs [first, last).
u32 destinations_within(const ConversionTables& tables, u32 first, u32 last) {
  u32 most = 0;
  for (const ConversionTable& t : tables.host)
    most = std::max(most, t.destinations_below(last) - t.destinations_below(first));
  return most;
}

template <u32 LogN>
void launch_of(device::Stream& stream, ConvertColumnsArgs args, const ConversionTables& tables,
               u32 polys) {
  const u32 tiles = (1u << kRowBits<LogN>) / ConvertTile<LogN>::kColumns;
  const u32 rows = polys * tables.count;
  const u32 most = destinations_within(tables, args.first_limb, args.last_limb);
  const u32 groups = convert_columns_groups(tiles * rows, most, cuda_stream(stream).processors());
  if (groups == 0) return;
  const u32 turns = divide_up(most, kConvertColumnsTogether);
  args.outputs = divide_up(turns, groups) * kConvertColumnsTogether;
  const u32 bytes =
      convert_columns_bytes(args.shared_sources, padded_sources(tables.max_sources), args.outputs);
  const auto cost = [&] {
    return traffic::convert_columns(tables, LogN, polys, args.first_limb, args.last_limb, groups);
  };
  auto* kernel = tables.max_sources > kConvertColumnsShared ? convert_columns<LogN, true>
                                                            : convert_columns<LogN, false>;
  launch(stream, cost, kernel, dim3(tiles, rows, groups), kConvertColumnsThreads, bytes, args);
}

}  // namespace

void allow_convert_columns(u32 log_n, const GpuModel& gpu) {
  if (!covers(log_n) || !enough_shared_memory(gpu)) return;
  switch (log_n) {
    case 15:
      return allow_of<15>(gpu);
    case 16:
      return allow_of<16>(gpu);
    default:
      return allow_of<17>(gpu);
  }
}

void launch_convert_columns(device::Stream& stream, const RingTables& ring,
                            const ConversionTables& tables, Poly<const u32> in,
                            const ring::PolyShape& in_shape, const TransformArgs& args, u32 limbs,
                            const LimbBytes& skip, u32 first_limb) {
  const u32 last_limb = first_limb + limbs;
  if (!fused(cuda_stream(stream).model(), args.log_n, tables)) {
    launch_base_convert(stream, ring, tables, in, args.out, in_shape, false, first_limb, last_limb);
    return launch_column_forward(stream, args, limbs, skip);
  }
  ConvertColumnsArgs fused_args = {};
  fused_args.primes = ring.primes;
  fused_args.tables = tables.tables;
  fused_args.matrices = tables.matrices;
  fused_args.roots = ring.forward.pairs;
  fused_args.in = {reinterpret_cast<const i32*>(in.data), in.component_stride, in.batch_stride};
  fused_args.out = args.out;
  fused_args.digits = tables.count;
  fused_args.components = in_shape.components;
  fused_args.first_limb = first_limb;
  fused_args.last_limb = last_limb;
  fused_args.shared_sources = shared_sources(tables);
  switch (args.log_n) {
    case 15:
      return launch_of<15>(stream, fused_args, tables, in_shape.polys());
    case 16:
      return launch_of<16>(stream, fused_args, tables, in_shape.polys());
    default:
      return launch_of<17>(stream, fused_args, tables, in_shape.polys());
  }
}

}  // namespace crenel::backend::cuda
