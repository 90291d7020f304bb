#include <algorithm>

#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/column_items.h"
#include "backends/cuda/poly/host/convert_columns.h"
#include "backends/cuda/poly/kernels/convert_columns.cuh"

namespace crenel::backend::cuda {
namespace {

struct Instance {
  void (*kernel)(ConvertColumnsArgs) = nullptr;
  std::size_t shared_bytes = 0;
};

template <u32 LogN, u32 Sources, u32 Folded>
Instance instance() {
  return {convert_columns<LogN, Sources, Folded>,
          sizeof(typename FusedTile<LogN, Sources, Folded>::Memory)};
}

template <u32 LogN, u32 Folded>
Instance instance_of(u32 sources) {
  switch (sources) {
    case 4:
      return instance<LogN, 4, Folded>();
    case 8:
      return instance<LogN, 8, Folded>();
    case 12:
      return instance<LogN, 12, Folded>();
    case 16:
      return instance<LogN, 16, Folded>();
    default:
      return {};
  }
}

// No kernel where none was compiled: before kMinFusedLogN, from which on column passes leave tiles.
template <u32 Folded>
Instance instance_of(u32 log_n, u32 sources) {
  static_assert(kMinFusedLogN == 14 && kMaxLogN == 17);
  switch (log_n) {
    case 14:
      return instance_of<14, Folded>(sources);
    case 15:
      return instance_of<15, Folded>(sources);
    case 16:
      return instance_of<16, Folded>(sources);
    case 17:
      return instance_of<17, Folded>(sources);
    default:
      return {};
  }
}

Instance instance_of(u32 log_n, u32 sources, u32 folded) {
  return folded == 4   ? instance_of<4>(log_n, sources)
         : folded == 2 ? instance_of<2>(log_n, sources)
                       : instance_of<0>(log_n, sources);
}

// A kernel and the matrices that it takes, chosen once for a launch.
struct Form {
  Instance instance;
  u32 folded;
};

Form form_of(const CudaStream& queue, const ConversionTables& tables, u32 log_n) {
  const u32 folded =
      tables.folded == nullptr ? 0 : folded_matrices(queue.tuned(Tunable::folded_matrices));
  return {instance_of(log_n, padded_sources(tables.max_sources), folded), folded};
}

std::vector<ColumnRange> ranges_of(const ConversionTables& tables, u32 first_limb, u32 last_limb) {
  std::vector<ColumnRange> ranges;
  for (const ConversionTable& t : tables.host)
    ranges.push_back({t.destinations_below(first_limb), t.destinations_below(last_limb)});
  return ranges;
}

// What the kernel asks for but for the items.
ConvertColumnsArgs columns_args(const RingTables& ring, const ConversionTables& tables,
                                u32 folded) {
  ConvertColumnsArgs args = {};
  args.matrices = folded ? tables.folded : tables.matrices;
  args.targets = tables.column_targets;
  args.reciprocals = tables.reciprocals;
  args.roots = ring.forward.pairs;
  args.digits = tables.count;
  for (u32 d = 0; d < tables.count; ++d) {
    const ConversionTable& t = tables.host[d];
    ColumnDigit& digit = args.digit[d];
    digit.matrix = folded ? t.target * folded_words(t.padded) : t.matrix;
    digit.target = t.target, digit.reciprocal = t.reciprocal;
    digit.first = static_cast<u8>(t.first), digit.sources = static_cast<u8>(t.sources);
    digit.shift = static_cast<u8>(t.shift), digit.padded = static_cast<u8>(t.padded);
    digit.rounding = t.rounding;
  }
  return args;
}

}  // namespace

void allow_convert_columns(u32 log_n, const GpuModel& gpu) {
  if (gpu.index == kDry) return;
  const DeviceGuard guard(gpu.index);
  for (u32 sources = 4; sources <= kMaxFusedSources; sources += 4) {
    for (const u32 folded : {0, 2, 4}) {
      const Instance fused = instance_of(log_n, sources, folded);
      if (fused.kernel == nullptr || fused.shared_bytes > gpu.shared_bytes) continue;
      CRENEL_CUDA_TRY(cudaFuncSetAttribute(fused.kernel,
                                           cudaFuncAttributeMaxDynamicSharedMemorySize,
                                           static_cast<int>(fused.shared_bytes)));
    }
  }
}

namespace {

// But for the number of items. GPUs without clusters have less shared memory than any form needs.
bool fuses(const CudaStream& queue, const ConversionTables& tables, const Form& form) {
  return queue.on(Optimisation::convert_columns) && queue.on(Optimisation::held_sources) &&
         queue.model().compute_major >= kClusterMajor && form.instance.kernel != nullptr &&
         form.instance.shared_bytes <= queue.model().shared_bytes &&
         tables.count <= kFusedMaxDigits;
}

std::vector<ColumnItem> items_of(const CudaStream& queue, const std::vector<ColumnRange>& ranges,
                                 u32 copies) {
  if (!queue.on(Optimisation::conversion_shape))
    return equal_column_items(ranges, kConvertPlainOutputs);
  const u32 most =
      std::min(kFusedMaxOutputs, static_cast<u32>(queue.tuned(Tunable::conversion_outputs)));
  return column_items(ranges, copies, queue.processors(), most,
                      static_cast<u32>(queue.tuned(Tunable::conversion_granule)));
}

}  // namespace

// However destinations are divided: whether they will be is not known before the launch.
bool takes_tiles(device::Stream& stream, const ConversionTables& tables, u32 log_n) {
  const CudaStream& queue = cuda_stream(stream);
  return fuses(queue, tables, form_of(queue, tables, log_n)) &&
         tables.count * divide_up(tables.max_destinations, kFusedTogether) <= kFusedMaxItems;
}

void launch_convert_columns(device::Stream& stream, const RingTables& ring,
                            const ConversionTables& tables, const Sources& in,
                            const ring::PolyShape& in_shape, const TransformArgs& passes,
                            u32 first_limb, u32 limbs, const LimbBytes& own, bool early) {
  const CudaStream& queue = cuda_stream(stream);
  const u32 last_limb = first_limb + limbs;
  const u32 copies = in_shape.ring_dim() / kFusedValues * in_shape.polys();
  const Form form = form_of(queue, tables, in_shape.log_n);
  const bool fused = in.tiled || fuses(queue, tables, form);
  auto items = fused ? items_of(queue, ranges_of(tables, first_limb, last_limb), copies)
                     : std::vector<ColumnItem>();
  if (in.tiled && items.size() > kFusedMaxItems)  // takes_tiles() has seen to that
    throw UnsupportedError(
        cat("conversion of tiles: ", items.size(), " items, expected at most ", kFusedMaxItems),
        {{"items", items.size()}, {"expected", kFusedMaxItems}});
  if (!fused || items.size() > kFusedMaxItems) {
    launch_base_convert(stream, ring, tables, in.poly, passes.out, in_shape, false, first_limb,
                        last_limb);
    launch_column_forward(stream, passes, limbs, own);
    return;
  }
  ConvertColumnsArgs args = columns_args(ring, tables, form.folded);
  args.in = in.poly;
  args.out = passes.out;
  args.components = in_shape.components;
  args.first_limb = first_limb;
  args.early = early ? 1 : 0;
  args.tiled = in.tiled ? 1 : 0;
  const bool pairs = in.tiled && queue.tuned(Tunable::conversion_pairs) != 0;
  args.paired = pairs && pair_items(items, copies, queue.processors()) ? 1 : 0;
  std::copy(items.begin(), items.end(), args.item);
  const u32 cluster = 1 + args.paired;
  const dim3 grid(in_shape.ring_dim() / kFusedValues * cluster, in_shape.polys(),
                  static_cast<u32>(items.size()) / cluster);
  const auto cost = [&] {
    return traffic::convert_columns(tables, in_shape.log_n, in_shape.polys(), first_limb, last_limb,
                                    items, kFusedValues, form.folded, cluster);
  };
  launch_clusters(stream, cost, form.instance.kernel, cluster, grid, kFusedThreads,
                  form.instance.shared_bytes, args);
}

}  // namespace crenel::backend::cuda
