#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/convert_view.h"
#include "backends/cuda/poly/host/kernels.h"
#include "backends/cuda/poly/kernels/lift_signed.cuh"

namespace crenel::backend::cuda {

void CudaPolyKernels::do_lift_signed(Stream& stream, i64* values, ConstView in) {
  const bool two = in.limbs.size() == 2;
  LiftArgs args = {};
  args.in = poly(in);
  args.values = values;
  args.log_n = in.shape.log_n;
  args.components = in.shape.components;
  args.q0 = ring().modulus(in.limbs[0]).q;
  args.q1 = 1;
  if (two) {
    const math::Modulus<u32>& m = ring().modulus(in.limbs[1]);
    const auto pair = [&](u32 value) {
      const auto constant = math::make_shoup<u32>(value, m.q);
      return Pair{constant.value, constant.quotient};
    };
    args.q1 = m.q;
    args.one = pair(1);
    args.scale = pair(math::inverse_mod<u32>(args.q0 % m.q, m));
  }
  const dim3 grid(divide_up(in.ring_dim(), 4 * kElementThreads), 1, in.shape.polys());
  const auto cost = [&] {
    const traffic::Extent extent{in.shape.log_n, in.limbs.size(), in.shape.polys()};
    return traffic::lift_signed(extent);
  };
  launch(stream, cost, two ? cuda::lift_signed<true> : cuda::lift_signed<false>, grid,
         kElementThreads, 0, args);
}

}  // namespace crenel::backend::cuda
