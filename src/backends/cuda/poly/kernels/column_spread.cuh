// The last pass of an inverse transform that stores to the memory of several GPUs.
#pragma once

#include "backends/cuda/poly/kernels/ntt_columns.cuh"
#include "backends/cuda/poly/kernels/spread.cuh"

namespace crenel::backend::cuda {

// The inverse column pass of the sources of a base conversion (column_inverse, shifted), in place
// of spread_limbs after it: stores overlap with the transform of other tiles. Results go to the
// targets only. The conversion after it may start its blocks as after column_inverse: all of this
// kernel have begun by then, and none of them waits for more than other GPUs.
template <u32 LogN>
__global__ void __launch_bounds__(kSpreadThreads<kColumnBits<LogN>>,
                                  kNttBlocksPerSm* kColumnThreads<kColumnBits<LogN>> /
                                      kSpreadThreads<kColumnBits<LogN>>)
    column_inverse_spread(const __grid_constant__ TransformArgs args, const InverseScale* scales,
                          const __grid_constant__ SpreadArgs spread) {
  inverse_columns<LogN, InverseTail::shifted, kSpreadColumns<kColumnBits<LogN>>>(
      args, scales, [&](u32 limb, u32 b, u32 c, u32 first, const u32(&x)[kPerThread]) {
        for (u32 t = 0; t < spread.targets; ++t) {
          u32* to = spread.to[t].limb(b, c, spread.position.at[limb], LogN) + first;
#pragma unroll
          for (u32 e = 0; e < kPerThread; ++e) to[e << kColumnStep<LogN>] = x[e];
        }
      });
  meet(spread);
}

}  // namespace crenel::backend::cuda
