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
      args, scales, [&](u32 limb, u32 b, u32 c, u32 first, const u32(&x)[kPerThread], u32*) {
        for (u32 t = 0; t < spread.targets; ++t) {
          u32* to = spread.to[t].limb(b, c, spread.position.at[limb], LogN) + first;
#pragma unroll
          for (u32 e = 0; e < kPerThread; ++e) to[e << kColumnStep<LogN>] = x[e];
        }
      });
  meet(spread);
}

// The same in tiles, as TiledSources says. The two of a block are one piece of a limb: they are put
// together in shared memory, the second half of the banks further on, so that a warp's stores meet
// in none, and go from there, 16 bytes a thread.
template <u32 LogN>
__global__ void __launch_bounds__(kColumnThreads<kColumnBits<LogN>>, kNttBlocksPerSm)
    column_inverse_spread_tiles(const __grid_constant__ TransformArgs args,
                                const InverseScale* scales,
                                const __grid_constant__ SpreadArgs spread) {
  using Tiles = TiledSources<LogN>;
  constexpr u32 kGap = 16, kPlace = kFusedValues + kGap;
  constexpr u32 kColumns = kTileColumns<kColumnBits<LogN>>;
  inverse_columns<LogN, InverseTail::tiled, kColumns, Tiles::kTiles * kGap>(
      args, scales, [&](u32 limb, u32 b, u32 c, u32 first, const u32(&x)[kPerThread], u32* tile) {
        const u32 column = first % kColumns;
        __syncthreads();  // all have read it
        put_in_tile<LogN>(tile + column / Tiles::kColumns * kPlace, first >> kRowBits<LogN>,
                          column % Tiles::kColumns, x);
        __syncthreads();
        constexpr u32 kQuads = kPerThread / 4, kStride = 4 * kColumnThreads<kColumnBits<LogN>>;
        uint4 quads[kQuads];
#pragma unroll
        for (u32 k = 0; k < kQuads; ++k) {
          const u32 at = 4 * threadIdx.x + k * kStride;
          quads[k] = load4(tile + at / kFusedValues * kPlace + at % kFusedValues);
        }
        for (u32 t = 0; t < spread.targets; ++t) {
          u32* to = spread.to[t].limb(b, c, spread.position.at[limb], LogN) +
                    blockIdx.x * Tiles::kTiles * kFusedValues;
#pragma unroll
          for (u32 k = 0; k < kQuads; ++k) store4(to + 4 * threadIdx.x + k * kStride, quads[k]);
        }
      });
  meet(spread);
}

}  // namespace crenel::backend::cuda
