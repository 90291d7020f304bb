// The last pass of an inverse transform that stores to the memory of several GPUs.
#pragma once

#include "backends/cuda/poly/kernels/ntt_columns.cuh"
#include "backends/cuda/poly/kernels/spread.cuh"

namespace crenel::backend::cuda {

// The inverse column pass of the sources of a base conversion (column_inverse, shifted), in place
// of spread_limbs after it: stores overlap with the transform of other tiles. Results go to the
// targets only.
template <u32 LogN>
__global__ void __launch_bounds__(kColumnThreads<kColumnBits<LogN>>, kNttBlocksPerSm)
    column_inverse_spread(const __grid_constant__ TransformArgs args, const InverseScale* scales,
                          const __grid_constant__ SpreadArgs spread) {
  begin_kernel();
  constexpr u32 Bits = kColumnBits<LogN>, kRow = kRowBits<LogN>, kHigh = Bits - 4;
  constexpr u32 kColumns = kTileColumns<Bits>;
  __shared__ u32 tile[kColumnTileWords<Bits>];
  __shared__ __align__(16) uint2 heap[1u << Bits];
  const u32 limb = gridDim.z - 1 - blockIdx.z;
  const u32 b = blockIdx.y / args.components, c = blockIdx.y % args.components;
  const u32 id = args.prime.at[limb], q = args.primes[id].q;
  const SharedTwiddles twiddles = fetch_column_twiddles<Bits>(heap, shoup_twiddles(args, id, LogN));
  const InverseScale scale = scales[limb];
  const u32 lane = threadIdx.x % kColumns, group = threadIdx.x / kColumns;
  const u32 column = blockIdx.x * kColumns + lane;
  const u32* from = args.in.limb(b, c, args.in_position.at[limb], LogN) + column;
  u32 x[kPerThread];
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) x[e] = from[(group << (4 + kRow)) + (e << kRow)];
  wait_for_copies();
  __syncthreads();
  inverse_round<4>(x, twiddles, (1u << kHigh) + group, q);
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) tile[joined_slot<Bits>(group, e, lane)] = x[e];
  __syncthreads();
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) x[e] = tile[split_slot<Bits>(group, e, lane)];
  inverse_round_scaled<kHigh>(x, twiddles, q, scale.c, scale.c_root);
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) x[e] = centre_up(x[e], q);
  for (u32 t = 0; t < spread.targets; ++t) {
    u32* to = spread.to[t].limb(b, c, spread.position.at[limb], LogN) + (group << kRow) + column;
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) to[e << (kHigh + kRow)] = x[e];
  }
  meet(spread);
}

}  // namespace crenel::backend::cuda
