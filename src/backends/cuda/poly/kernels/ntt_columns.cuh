// The column pass of 2^10 .. 2^17 points, forward and inverse.
#pragma once

#include "backends/cuda/poly/device/transform.cuh"

namespace crenel::backend::cuda {

/// shifted: as the sources of a base conversion (base_convert.cuh).
enum class InverseTail { canonical, shifted };

// Tile of the column pass. A thread of group g holds either the rows g + e 2^(Bits-4) (split) or
// 16 g + e (joined). When a row is only 16 words wide, 16 more every 16 rows put the two groups of
// a warp on different banks.
template <u32 Bits>
inline constexpr u32 kColumnPad = kTileColumns<Bits> == 16 ? 16 : 0;
template <u32 Bits>
inline constexpr u32 kColumnTileWords = (kTileColumns<Bits> << Bits) + 16 * kColumnPad<Bits>;
template <u32 Bits>
__device__ __forceinline__ u32 split_slot(u32 group, u32 e, u32 lane) {
  return group * kTileColumns<Bits> + lane +
         e * ((kTileColumns<Bits> << (Bits - 4)) + kColumnPad<Bits>);
}
template <u32 Bits>
__device__ __forceinline__ u32 joined_slot(u32 group, u32 e, u32 lane) {
  return group * (16 * kTileColumns<Bits> + kColumnPad<Bits>)+lane + e * kTileColumns<Bits>;
}

// Columns that a block transforms, one tile after the other: as many blocks as the GPU holds go
// through all tiles of all polynomials and limbs in steps of their number, and the values and
// twiddles of a block's next tile travel to shared memory while it works on one. Limbs are the slow
// axis, in descending order: the passes before and after go through them in ascending order, so
// each starts with what L2 still holds.

/// What a pass works through: `items` tiles, tile fastest, then polynomial, then limb.
template <u32 LogN>
struct ColumnItem {
  static constexpr u32 kBits = kColumnBits<LogN>;
  static constexpr u32 kTiles = (1u << kRowBits<LogN>) / kTileColumns<kBits>;
  u32 column, batch, component, limb;

  __device__ __forceinline__ ColumnItem(u32 item, const TransformArgs& args, u32 limbs) {
    const u32 poly = item / kTiles % args.polys;
    column = item % kTiles * kTileColumns<kBits>;
    batch = poly / args.components, component = poly % args.components;
    limb = limbs - 1 - item / (kTiles * args.polys);
  }
};

/// Values and twiddles of two tiles.
template <u32 Bits>
struct ColumnStage {
  __align__(16) u32 tile[2][kColumnTileWords<Bits>];
  __align__(16) uint2 heap[2][1u << Bits];
};

/// Starts bringing the tile of an item, rows one after the other.
template <u32 LogN>
__device__ __forceinline__ void fetch_columns(u32* tile, uint2* heap, const TransformArgs& args,
                                              const ColumnItem<LogN>& item) {
  constexpr u32 Bits = kColumnBits<LogN>, kColumns = kTileColumns<Bits>;
  constexpr u32 kThreads = kColumnThreads<Bits>, kChunks = kColumns / 4;
  const u32* from =
      args.in.limb(item.batch, item.component, args.in_position.at[item.limb], LogN) + item.column;
#pragma unroll
  for (u32 k = 0; k < 4; ++k) {
    const u32 chunk = threadIdx.x + k * kThreads;
    const u32 row = chunk / kChunks, at = 4 * (chunk % kChunks);
    copy_async(tile + row * kColumns + (row >> 4) * kColumnPad<Bits> + at,
               from + (row << kRowBits<LogN>)+at);
  }
  const uint2* roots = shoup_twiddles(args, args.prime.at[item.limb], LogN).table;
  for (u32 k = threadIdx.x; k < (1u << Bits) / 2; k += kThreads)
    copy_async(reinterpret_cast<u32*>(heap + 2 * k), reinterpret_cast<const u32*>(roots + 2 * k));
}

/// work(item, tile, heap) for the items of this block but those of component skip.at[limb].
template <u32 LogN, class Work>
__device__ __forceinline__ void for_columns(const TransformArgs& args, u32 limbs,
                                            const LimbBytes* skip, const Work& work) {
  __shared__ ColumnStage<kColumnBits<LogN>> stage;
  const u32 items = ColumnItem<LogN>::kTiles * args.polys * limbs;
  const auto next = [&](u32 item) {
    for (; item < items && skip != nullptr; item += gridDim.x) {
      const ColumnItem<LogN> at(item, args, limbs);
      if (skip->at[at.limb] != at.component) break;
    }
    return item;
  };
  const auto fetch = [&](u32 item, u32 slot) {
    if (item < items)
      fetch_columns<LogN>(stage.tile[slot], stage.heap[slot], args,
                          ColumnItem<LogN>(item, args, limbs));
  };
  u32 item = next(blockIdx.x), slot = 0;
  fetch(item, slot);
  while (item < items) {
    wait_for_copies();
    __syncthreads();  // all of the tile is there, and nobody reads the other one any more
    const u32 after = next(item + gridDim.x);
    fetch(after, slot ^ 1);
    work(ColumnItem<LogN>(item, args, limbs), stage.tile[slot], stage.heap[slot]);
    item = after, slot ^= 1;
  }
}

// A thread reads the values of its first round where it writes them for the exchange: a barrier
// between the two would order nothing.

/// First stages; component skip.at[limb] is left out. Grid: x blocks; `limbs` of the output.
template <u32 LogN>
__global__ void __launch_bounds__(kColumnThreads<kColumnBits<LogN>>, kColumnBlocksPerSm)
    column_forward(const __grid_constant__ TransformArgs args,
                   const __grid_constant__ LimbBytes skip, u32 limbs) {
  begin_kernel();
  constexpr u32 Bits = kColumnBits<LogN>, kRow = kRowBits<LogN>;
  constexpr u32 kHigh = Bits - 4;
  const u32 lane = threadIdx.x % kTileColumns<Bits>, group = threadIdx.x / kTileColumns<Bits>;
  for_columns<LogN>(
      args, limbs, &skip, [&](const ColumnItem<LogN>& item, u32* tile, const uint2* heap) {
        const u32 q = args.primes[args.prime.at[item.limb]].q;
        const SharedTwiddles twiddles = {heap, q};
        u32* to = args.out.limb(item.batch, item.component, item.limb, LogN) + item.column + lane;
        u32 x[kPerThread];
#pragma unroll
        for (u32 e = 0; e < kPerThread; ++e) x[e] = tile[split_slot<Bits>(group, e, lane)];
        forward_round<kHigh>(x, twiddles, 1, q);
#pragma unroll
        for (u32 e = 0; e < kPerThread; ++e) tile[split_slot<Bits>(group, e, lane)] = x[e];
        __syncthreads();
#pragma unroll
        for (u32 e = 0; e < kPerThread; ++e) x[e] = tile[joined_slot<Bits>(group, e, lane)];
        forward_round<4>(x, twiddles, (1u << kHigh) + group, q);
#pragma unroll
        for (u32 e = 0; e < kPerThread; ++e) to[(group << (4 + kRow)) + (e << kRow)] = x[e];
      });
}

template <u32 LogN, InverseTail Tail>
__global__ void __launch_bounds__(kColumnThreads<kColumnBits<LogN>>, kColumnBlocksPerSm)
    column_inverse(const __grid_constant__ TransformArgs args, const InverseScale* scales,
                   u32 limbs) {
  begin_kernel();
  constexpr u32 Bits = kColumnBits<LogN>, kRow = kRowBits<LogN>;
  constexpr u32 kHigh = Bits - 4;
  const u32 lane = threadIdx.x % kTileColumns<Bits>, group = threadIdx.x / kTileColumns<Bits>;
  for_columns<LogN>(
      args, limbs, nullptr, [&](const ColumnItem<LogN>& item, u32* tile, const uint2* heap) {
        const PrimeConstants& m = args.primes[args.prime.at[item.limb]];
        const u32 q = m.q;
        const SharedTwiddles twiddles = {heap, q};
        const InverseScale scale = scales ? scales[item.limb] : InverseScale{m.n_inv, m.n_inv_root};
        u32* to = args.out.limb(item.batch, item.component, item.limb, LogN) + item.column + lane;
        u32 x[kPerThread];
#pragma unroll
        for (u32 e = 0; e < kPerThread; ++e) x[e] = tile[joined_slot<Bits>(group, e, lane)];
        inverse_round<4>(x, twiddles, (1u << kHigh) + group, q);
#pragma unroll
        for (u32 e = 0; e < kPerThread; ++e) tile[joined_slot<Bits>(group, e, lane)] = x[e];
        __syncthreads();
#pragma unroll
        for (u32 e = 0; e < kPerThread; ++e) x[e] = tile[split_slot<Bits>(group, e, lane)];
        // A round of fewer than four stages leaves pairs at distance 8 only in its last stage.
        inverse_round_scaled<kHigh>(x, twiddles, q, scale.c, scale.c_root);
#pragma unroll
        for (u32 e = 0; e < kPerThread; ++e)
          to[(group << kRow) + (e << (kHigh + kRow))] =
              Tail == InverseTail::shifted ? centre_up(x[e], q) : x[e];
      });
}

}  // namespace crenel::backend::cuda
