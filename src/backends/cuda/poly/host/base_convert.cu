#include <algorithm>

#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/base_convert_launch.h"
#include "backends/cuda/poly/host/convert_view.h"
#include "backends/cuda/poly/host/kernels.h"
#include "backends/cuda/poly/kernels/base_convert.cuh"

namespace crenel::backend::cuda {
namespace {

template <bool Scaled>
void (*kernel_for(u32 held))(ConvertArgs) {
  switch (held) {
    case 4:
      return base_convert<4, Scaled>;
    case 8:
      return base_convert<8, Scaled>;
    case 12:
      return base_convert<12, Scaled>;
    case 16:
      return base_convert<16, Scaled>;
    case 20:
      return base_convert<20, Scaled>;
    default:
      return base_convert<0, Scaled>;
  }
}

}  // namespace

ConvertArgs convert_args(const RingTables& ring, const ConversionTables& tables, Poly<const u32> in,
                         Poly<u32> out, const ring::PolyShape& in_shape, u32 first_limb,
                         u32 last_limb) {
  ConvertArgs args = {};
  args.primes = ring.primes;
  args.tables = tables.tables;
  args.matrices = tables.matrices;
  args.targets = tables.targets;
  args.source_scales = tables.source_scales;
  args.reciprocals = tables.reciprocals;
  args.in = in;
  args.out = out;
  args.log_n = in_shape.log_n;
  args.digits = tables.count;
  args.components = in_shape.components;
  args.first_limb = first_limb;
  args.last_limb = last_limb;
  return args;
}

void launch_base_convert(Stream& stream, const RingTables& ring, const ConversionTables& tables,
                         Poly<const u32> in, Poly<u32> out, const ring::PolyShape& in_shape,
                         bool scaled, u32 first_limb, u32 last_limb) {
  ConvertArgs args = convert_args(ring, tables, in, out, in_shape, first_limb, last_limb);
  constexpr u32 kValues = kConvertWarps * kConvertWarpValues;
  const u32 tiles = divide_up(in_shape.ring_dim(), kValues);
  const u32 rows = in_shape.polys() * tables.count;
  const u32 destinations = std::min(tables.max_destinations, last_limb - first_limb);
  const CudaStream& queue = cuda_stream(stream);
  const u32 held = queue.on(Optimisation::held_sources) ? held_sources(tables.max_sources) : 0;
  args.outputs = queue.on(Optimisation::conversion_shape)
                     ? convert_outputs(tiles * rows, destinations,
                                       queue.processors() * convert_blocks_per_sm(held),
                                       static_cast<u32>(queue.tuned(Tunable::conversion_start)),
                                       static_cast<u32>(queue.tuned(Tunable::conversion_outputs)))
                     : kConvertPlainOutputs;
  const dim3 grid(tiles, rows, divide_up(destinations, args.outputs));
  auto* kernel = scaled ? kernel_for<true>(held) : kernel_for<false>(held);
  const auto cost = [&] {
    return traffic::base_convert(tables, args.log_n, in_shape.polys(), first_limb, last_limb,
                                 args.outputs, kValues, held != 0);
  };
  launch(stream, cost, kernel, grid, 32 * kConvertWarps, 0, args);
}

void CudaPolyKernels::do_base_convert(Stream& stream, View out, ConstView in,
                                      const Prepared<rns::BaseConversion>& table) {
  launch_base_convert(stream, tables_, table.on_device<ConversionTables>(), poly(in), poly(out),
                      in.shape, true);
}

}  // namespace crenel::backend::cuda
