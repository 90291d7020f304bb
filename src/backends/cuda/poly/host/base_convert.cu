#include <algorithm>

#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/base_convert_launch.h"
#include "backends/cuda/poly/host/convert_view.h"
#include "backends/cuda/poly/host/kernels.h"
#include "backends/cuda/poly/kernels/base_convert.cuh"

namespace crenel::backend::cuda {
namespace {

template <bool Scaled, bool FoldOften>
void (*kernel_for(u32 sources))(ConvertArgs) {
  switch (padded_sources(sources)) {
    case 4:
      return base_convert<4, Scaled, FoldOften>;
    case 8:
      return base_convert<8, Scaled, FoldOften>;
    case 12:
      return base_convert<12, Scaled, FoldOften>;
    case 16:
      return base_convert<16, Scaled, FoldOften>;
    case 20:
      return base_convert<20, Scaled, FoldOften>;
    default:
      return base_convert<0, Scaled, true>;
  }
}

}  // namespace

void launch_base_convert(Stream& stream, const RingTables& ring, const ConversionTables& tables,
                         Poly<const u32> in, Poly<u32> out, const ring::PolyShape& in_shape,
                         bool scaled, u32 first_limb, u32 last_limb) {
  ConvertArgs args = {};
  args.primes = ring.primes;
  args.tables = tables.tables;
  args.matrices = tables.matrices;
  args.source_scales = tables.source_scales;
  args.in = {reinterpret_cast<const i32*>(in.data), in.component_stride, in.batch_stride};
  args.out = out;
  args.log_n = in_shape.log_n;
  args.digits = tables.count;
  args.components = in_shape.components;
  args.first_limb = first_limb;
  args.last_limb = last_limb;
  const u32 tiles = divide_up(in_shape.ring_dim(), kConvertValues * kConvertThreads);
  const u32 rows = in_shape.polys() * tables.count;
  const u32 destinations = std::min(tables.max_destinations, last_limb - first_limb);
  const CudaStream& queue = cuda_stream(stream);
  const u32 resident =
      queue.processors() * convert_blocks_per_sm(padded_sources(tables.max_sources));
  args.outputs = queue.on(Optimisation::conversion_shape)
                     ? convert_outputs(tiles * rows, destinations, resident)
                     : kConvertPlainOutputs;
  const bool fold_often = tables.fold_often || !queue.on(Optimisation::lazy_reduction);
  const dim3 grid(tiles, rows, divide_up(destinations, args.outputs));
  const u32 sources = tables.max_sources;
  auto* kernel =
      scaled ? (fold_often ? kernel_for<true, true>(sources) : kernel_for<true, false>(sources))
             : (fold_often ? kernel_for<false, true>(sources) : kernel_for<false, false>(sources));
  const auto cost = [&] {
    return traffic::base_convert(tables, args.log_n, in_shape.polys(), first_limb, last_limb,
                                 args.outputs, kConvertValues * kConvertThreads, fold_often);
  };
  launch(stream, cost, kernel, grid, kConvertThreads, 0, args);
}

void CudaPolyKernels::do_base_convert(Stream& stream, View out, ConstView in,
                                      const Prepared<rns::BaseConversion>& table) {
  launch_base_convert(stream, tables_, table.on_device<ConversionTables>(), poly(in), poly(out),
                      in.shape, true);
}

}  // namespace crenel::backend::cuda
