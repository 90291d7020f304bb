#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/convert_view.h"
#include "backends/cuda/poly/host/kernels.h"
#include "backends/cuda/poly/host/transform_launch.h"
#include "backends/cuda/poly/kernels/ntt_small.cuh"

namespace crenel::backend::cuda {
void CudaPolyKernels::do_ntt(Stream& stream, View out, ConstView in) {
  TransformArgs args = transform_args(tables_, true, poly(out), in, out.limbs);
  const u32 limbs = out.limbs.size();
  if (!fast())
    return launch(
        stream, [&] { return traffic::small_transform("small_forward", args, limbs); },
        small_forward, dim3(1, limbs, args.polys), kSmallThreads, 0, args);
  launch_column_forward(stream, args, limbs, no_limbs());
  launch_row_forward(stream, in_place(args), limbs, {no_limbs(), {}, {}});
}

void CudaPolyKernels::do_intt(Stream& stream, View out, ConstView in) {
  TransformArgs args = transform_args(tables_, false, poly(out), in, out.limbs);
  const u32 limbs = out.limbs.size();
  if (!fast())
    return launch(
        stream, [&] { return traffic::small_transform("small_inverse", args, limbs); },
        small_inverse, dim3(1, limbs, args.polys), kSmallThreads, 0, args);
  launch_row_inverse(stream, args, limbs);
  launch_column_inverse(stream, in_place(args), limbs, nullptr);
}

}  // namespace crenel::backend::cuda
