// The column pass of 2^10 .. 2^17 points, forward and inverse.
#pragma once

#include "backends/cuda/poly/device/tiled_sources.cuh"
#include "backends/cuda/poly/device/transform.cuh"

namespace crenel::backend::cuda {

/// shifted: as the sources of a base conversion (base_convert.cuh); tiled: so, where its blocks
/// take them (TiledSources), in place only of what is blocked.
enum class InverseTail { canonical, shifted, tiled };

// Tile of the column pass. A thread of group g holds either the rows g + e 2^(Bits-4) (split) or
// 16 g + e (joined). When a row is only 16 words wide, 16 more every 16 rows put the two groups of
// a warp on different banks.
template <u32 Columns>
inline constexpr u32 kColumnPad = Columns == 16 ? 16 : 0;
template <u32 Bits, u32 Columns = kTileColumns<Bits>>
inline constexpr u32 kColumnTileWords = (Columns << Bits) + 16 * kColumnPad<Columns>;
template <u32 Bits, u32 Columns = kTileColumns<Bits>>
__device__ __forceinline__ u32 split_slot(u32 group, u32 e, u32 lane) {
  return group * Columns + lane + e * ((Columns << (Bits - 4)) + kColumnPad<Columns>);
}
template <u32 Bits, u32 Columns = kTileColumns<Bits>>
__device__ __forceinline__ u32 joined_slot(u32 group, u32 e, u32 lane) {
  return group * (16 * Columns + kColumnPad<Columns>)+lane + e * Columns;
}

// Starts bringing the twiddles of all stages of the pass: the same for every column.
template <u32 Bits>
__device__ __forceinline__ SharedTwiddles fetch_column_twiddles(uint2* heap,
                                                                const ShoupTwiddles& roots) {
  for (u32 k = threadIdx.x; k < (1u << Bits) / 2; k += blockDim.x)
    copy_async<16>(heap + 2 * k, roots.table + 2 * k);
  return {heap, roots.q};
}

// Grid: x tiles of columns, y polynomials, z limbs in descending order: the passes before and after
// go through them in ascending order (key_switch_rows in about that), so each starts with what L2
// still holds.

/// First stages; component skip.at[limb] is left out.
template <u32 LogN>
__global__ void __launch_bounds__(kColumnThreads<kColumnBits<LogN>>, kNttBlocksPerSm)
    column_forward(const __grid_constant__ TransformArgs args,
                   const __grid_constant__ LimbBytes skip) {
  begin_kernel();
  constexpr u32 Bits = kColumnBits<LogN>, kRow = kRowBits<LogN>, kHigh = Bits - 4;
  constexpr u32 kColumns = kTileColumns<Bits>;
  __shared__ u32 tile[kColumnTileWords<Bits>];
  __shared__ __align__(16) uint2 heap[1u << Bits];
  const u32 limb = gridDim.z - 1 - blockIdx.z;
  const u32 b = blockIdx.y / args.components, c = blockIdx.y % args.components;
  if (skip.at[limb] == c) return;
  const u32 id = args.prime.at[limb], q = args.primes[id].q;
  const SharedTwiddles twiddles = fetch_column_twiddles<Bits>(heap, shoup_twiddles(args, id, LogN));
  const u32 lane = threadIdx.x % kColumns, group = threadIdx.x / kColumns;
  const u32 column = blockIdx.x * kColumns + lane;
  const u32* from = args.in.limb(b, c, args.in_position.at[limb], LogN) + column;
  u32* to = args.out.limb(b, c, limb, LogN) + column;
  u32 x[kPerThread];
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) x[e] = from[(group << kRow) + (e << (kHigh + kRow))];
  wait_for_copies();
  __syncthreads();
  forward_round<kHigh>(x, twiddles, 1, q);
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) tile[split_slot<Bits>(group, e, lane)] = x[e];
  __syncthreads();
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) x[e] = tile[joined_slot<Bits>(group, e, lane)];
  forward_round<4>(x, twiddles, (1u << kHigh) + group, q);
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) to[(group << (4 + kRow)) + (e << kRow)] = x[e];
}

/// Between the coefficients of neighbouring values of a thread, as a power of two.
template <u32 LogN>
inline constexpr u32 kColumnStep = kColumnBits<LogN> - 4 + kRowBits<LogN>;

// The inverse pass of a block with the wait for the launch before it, all but its stores:
// store(limb, batch, component, first, x, tile) of each thread, whose value x[e] belongs to
// coefficient first + (e << kColumnStep<LogN>) of the limb. The block's `tile`, of Gap words more
// than its values, is free after a barrier.
template <u32 LogN, InverseTail Tail, u32 Columns, u32 Gap = 0, class Store>
__device__ __forceinline__ void inverse_columns(const TransformArgs& args,
                                                const InverseScale* scales, const Store& store) {
  constexpr u32 Bits = kColumnBits<LogN>, kRow = kRowBits<LogN>, kHigh = Bits - 4;
  constexpr bool kTiled = Tail == InverseTail::tiled;
  static_assert(!kTiled || Columns == kTileColumns<Bits>);
  __shared__ __align__(16) u32 tile[kColumnTileWords<Bits, Columns> + Gap];
  __shared__ __align__(16) uint2 heap[1u << Bits];
  const u32 limb = gridDim.z - 1 - blockIdx.z;
  const u32 b = blockIdx.y / args.components, c = blockIdx.y % args.components;
  const u32 id = args.prime.at[limb];
  const PrimeConstants& m = args.primes[id];
  const u32 q = m.q;
  const SharedTwiddles twiddles = fetch_column_twiddles<Bits>(heap, shoup_twiddles(args, id, LogN));
  const InverseScale scale = scales ? scales[limb] : InverseScale{m.n_inv, m.n_inv_root};
  begin_kernel();  // after the tables, which no kernel writes
  if (args.early != 0) release_next();
  const u32 lane = threadIdx.x % Columns, group = threadIdx.x / Columns;
  const u32 column = blockIdx.x * Columns + lane;
  const u32* from = args.in.limb(b, c, args.in_position.at[limb], LogN);
  u32 x[kPerThread];
  if (kTiled && args.log_blocked != 0) {
    from += blockIdx.x * (Columns << Bits) + group * 16 * Columns + lane;
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) x[e] = from[e * Columns];
  } else {
    from += (group << (4 + kRow)) + column;
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) x[e] = from[e << kRow];
  }
  wait_for_copies();
  __syncthreads();
  inverse_round<4>(x, twiddles, (1u << kHigh) + group, q);
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) tile[joined_slot<Bits, Columns>(group, e, lane)] = x[e];
  __syncthreads();
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) x[e] = tile[split_slot<Bits, Columns>(group, e, lane)];
  // A round of fewer than four stages leaves pairs at distance 8 only in its last stage.
  inverse_round_scaled<kHigh>(x, twiddles, q, scale.c, scale.c_root);
  if constexpr (Tail != InverseTail::canonical) {
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) x[e] = centre_up(x[e], q);
  }
  store(limb, b, c, (group << kRow) + column, x, tile);
}

// A thread's values of one column into its tile: every 2^kHigh-th row from `row` on.
template <u32 LogN>
__device__ __forceinline__ void put_in_tile(u32* tile, u32 row, u32 column,
                                            const u32 (&x)[kPerThread]) {
  using Tiles = TiledSources<LogN>;
  u32* even = tile + Tiles::slot(row, column);
  u32* odd = tile + Tiles::slot(row + (1u << Tiles::kHigh), column);
  constexpr u32 kStep = Tiles::slot(2u << Tiles::kHigh, 0);
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) (e % 2 == 0 ? even : odd)[e / 2 * kStep] = x[e];
}

template <u32 LogN, InverseTail Tail>
__global__ void __launch_bounds__(kColumnThreads<kColumnBits<LogN>>, kNttBlocksPerSm)
    column_inverse(const __grid_constant__ TransformArgs args, const InverseScale* scales) {
  inverse_columns<LogN, Tail, kTileColumns<kColumnBits<LogN>>>(
      args, scales, [&](u32 limb, u32 b, u32 c, u32 first, const u32(&x)[kPerThread], u32*) {
        u32* to = args.out.limb(b, c, limb, LogN);
        if constexpr (Tail == InverseTail::tiled) {
          constexpr u32 kRow = kRowBits<LogN>, kColumns = TiledSources<LogN>::kColumns;
          const u32 column = first & ((1u << kRow) - 1);
          put_in_tile<LogN>(to + column / kColumns * kFusedValues, first >> kRow, column % kColumns,
                            x);
        } else {
#pragma unroll
          for (u32 e = 0; e < kPerThread; ++e) to[first + (e << kColumnStep<LogN>)] = x[e];
        }
      });
}

}  // namespace crenel::backend::cuda
