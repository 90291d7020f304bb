#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/convert_view.h"
#include "backends/cuda/poly/host/kernels.h"
#include "backends/cuda/poly/host/transform_launch.h"
#include "backends/cuda/poly/kernels/ntt_small.cuh"

namespace crenel::backend::cuda {
namespace {

TransformArgs arguments(const RingTables& tables, bool forward, const ring::PolyView<u32>& out,
                        const ring::PolyView<const u32>& in) {
  TransformArgs args = {};
  args.primes = tables.primes;
  args.roots = (forward ? tables.forward : tables.inverse).pairs;
  args.last_roots = (forward ? tables.forward : tables.inverse).words;
  args.in = poly(in);
  args.out = poly(out);
  args.log_n = out.shape.log_n;
  args.components = out.shape.components;
  args.polys = out.shape.polys();
  args.prime = prime_bytes(out.limbs);
  args.in_position = position_bytes(out.limbs, in.limbs);
  return args;
}

}  // namespace

void CudaPolyKernels::do_ntt(Stream& stream, View out, ConstView in) {
  TransformArgs args = arguments(tables_, true, out, in);
  const u32 limbs = out.limbs.size();
  if (!fast())
    return launch(
        stream, [&] { return traffic::small_transform("small_forward", args, limbs); },
        small_forward, dim3(1, limbs, args.polys), kSmallThreads, 0, args);
  launch_column_forward(stream, args, limbs, no_limbs());
  launch_row_forward(stream, in_place(args), limbs, {no_limbs(), {}, {}});
}

void CudaPolyKernels::do_intt(Stream& stream, View out, ConstView in) {
  TransformArgs args = arguments(tables_, false, out, in);
  const u32 limbs = out.limbs.size();
  if (!fast())
    return launch(
        stream, [&] { return traffic::small_transform("small_inverse", args, limbs); },
        small_inverse, dim3(1, limbs, args.polys), kSmallThreads, 0, args);
  launch_row_inverse(stream, args, limbs);
  launch_column_inverse(stream, in_place(args), limbs, nullptr);
}

}  // namespace crenel::backend::cuda
