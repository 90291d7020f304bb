// Both passes of the inverse transform of 2^14 .. 2^17 points in one launch. A block takes tiles
// of rows or of columns, one after the other, in the order of JointOrder; a tile of columns begins
// when all rows of its limb are written, while rows of other limbs are still transformed.
//
// A tile is drawn from a counter, so that tiles are begun in the order of their numbers whatever
// the order in which blocks become resident. Nothing can wait for ever: of the tiles not finished,
// take the one with the least number. A block draws its tiles in ascending order and works on them
// in that order, so it works on this one; that block is resident, and what this tile waits for has
// lesser numbers, so it is finished. Blocks that never become resident hold no tile. It does not
// matter what else the GPU runs, nor how many such launches at once.
//
// Counters lie in `progress`, which belongs to the stream or to the recording that the launch is
// part of. All of them count round, so that they are zero again when the last block ends: every
// block draws one number beyond the last tile; and each tile counts once on the counter of its
// limb, rows when they are written, columns when they have seen that all rows are.
#pragma once

#include <algorithm>

#include "backends/cuda/poly/kernels/ntt_columns.cuh"
#include "backends/cuda/poly/kernels/ntt_rows.cuh"

namespace crenel::backend::cuda {

enum class JointPass : u32 { rows, columns, none };

/// A tile of a pass.
struct JointTile {
  JointPass pass;
  u32 place;  ///< of the tile in its limb
  u32 limb, batch, component;
  u32 unit;  ///< limb and polynomial: the place of their counter
};

/// What the blocks of a launch share.
struct JointWork {
  u32* progress;
  JointOrder order;
  u32 tiles;  ///< of a limb
};

// Every block draws one number that is no tile's, the last of all makes the counter zero.
__device__ __forceinline__ u32 draw(const JointWork& work) {
  return atomicInc(work.progress, 2 * work.order.units * work.tiles + gridDim.x - 1);
}

__device__ __forceinline__ JointTile tile_of(const JointWork& work, const TransformArgs& args,
                                             u32 number) {
  if (number >= 2 * work.order.units * work.tiles) return {JointPass::none, 0, 0, 0, 0, 0};
  const JointOrder::Step step = work.order.step(number / work.tiles);
  const u32 limb = step.unit / args.polys, poly = step.unit % args.polys;
  const u32 batch = poly / args.components, component = poly % args.components;
  return {step.rows ? JointPass::rows : JointPass::columns,
          number % work.tiles,
          limb,
          batch,
          component,
          step.unit};
}

// The counter of a unit; zero again after the tiles of both passes.
struct JointCounter {
  u32* count;
  u32 tiles;

  __device__ __forceinline__ JointCounter(const JointWork& work, u32 unit)
      : count(work.progress + (1 + unit) * kProgressStride), tiles(work.tiles) {}
  /// After a barrier behind which the block has written its rows.
  __device__ __forceinline__ void rows_written() const { count_release(count, 2 * tiles - 1); }
  /// The barrier after this call is one after all rows of the unit are written.
  __device__ __forceinline__ void wait_for_rows() const {
    while (load_acquire(count) < tiles) __nanosleep(kProgressSleep);
    count_relaxed(count, 2 * tiles - 1);
  }
};

template <u32 LogN>
inline constexpr u32 kJointWords =
    std::max(kRowTileWords<kRowBits<LogN>> + kRowHeapWords<kRowBits<LogN>>,
             kColumnTileWords<kColumnBits<LogN>> + (2u << kColumnBits<LogN>));

template <u32 LogN, class Between>
__device__ __forceinline__ void transform_rows(const TransformArgs& args, const JointTile& tile,
                                               u32* shared, const Between& between) {
  constexpr u32 Bits = kRowBits<LogN>;
  const RowPlace<Bits> place(tile.limb, tile.place);
  const u32 id = args.prime.at[tile.limb], node = place.node(LogN);
  const ShoupTwiddles roots = shoup_twiddles(args, id, LogN);
  const LastTwiddles last = last_twiddles(args, id, place.last_node(LogN));
  const SharedTwiddles first = fetch_row_twiddles<Bits>(shared + kRowTileWords<Bits>,
                                                        place.row_in_block(), roots, node, place.i);
  u32 x[kPerThread];
  read_quads<Bits>(
      x,
      args.in.limb(tile.batch, tile.component, args.in_position.at[tile.limb], LogN) + place.start,
      place);
  inverse_row<Bits>(x, place.tile(shared), first, roots, last, node, place, between);
  write_row<Bits>(args.out.limb(tile.batch, tile.component, tile.limb, LogN) + place.start, x,
                  place.i);
}

template <u32 LogN, InverseTail Tail, class Between>
__device__ __forceinline__ void transform_columns(const TransformArgs& args,
                                                  const InverseScale* scales, const JointTile& tile,
                                                  u32* shared, const JointCounter& counter,
                                                  const Between& between) {
  constexpr u32 Bits = kColumnBits<LogN>;
  const u32 id = args.prime.at[tile.limb];
  const SharedTwiddles twiddles = fetch_column_twiddles<Bits>(
      reinterpret_cast<uint2*>(shared + kColumnTileWords<Bits>), shoup_twiddles(args, id, LogN));
  const InverseScale scale = scale_of<Tail>(scales, tile.limb, args.primes[id]);
  const ColumnPlace<LogN> place(tile.place);
  u32* limb = args.out.limb(tile.batch, tile.component, tile.limb, LogN);
  if (threadIdx.x == 0) counter.wait_for_rows();
  __syncthreads();
  u32 x[kPerThread];
  read_joined<LogN>(x, limb, place);
  inverse_column<LogN, Tail>(limb, x, shared, twiddles, scale, place, between);
}

// Grid: at most as many blocks as the GPU holds at once, at most one a tile.
template <u32 LogN, InverseTail Tail>
__global__ void __launch_bounds__(kColumnThreads<kColumnBits<LogN>>, kNttBlocksPerSm)
    joint_inverse(const __grid_constant__ TransformArgs args, const InverseScale* scales,
                  const __grid_constant__ JointWork work) {
  static_assert(kColumnThreads<kColumnBits<LogN>> == kRowThreads<kRowBits<LogN>>);
  __shared__ __align__(16) u32 shared[kJointWords<LogN>];
  __shared__ JointTile drawn[2];  // in turn, so that one barrier a tile is enough
  // Before begin_kernel: no kernel that is still at work uses this counter. Those of the stream
  // that do have ended, and had what they drew before they did.
  if (threadIdx.x == 0) drawn[0] = tile_of(work, args, draw(work));
  begin_kernel();
  __syncthreads();
  for (u32 turn = 0; drawn[turn].pass != JointPass::none; turn ^= 1) {
    const JointTile tile = drawn[turn];
    const JointCounter counter(work, tile.unit);
    u32 next = 0;
    // In the midst of a tile: its latency is hidden there, and a block of few tiles does not take
    // one that another block, which begins later, would begin sooner.
    const auto draw_next = [&] {
      if (threadIdx.x == 0) next = draw(work);
    };
    if (tile.pass == JointPass::rows)
      transform_rows<LogN>(args, tile, shared, draw_next);
    else
      transform_columns<LogN, Tail>(args, scales, tile, shared, counter, draw_next);
    if (threadIdx.x == 0) drawn[turn ^ 1] = tile_of(work, args, next);
    __syncthreads();
    if (threadIdx.x == 0 && tile.pass == JointPass::rows) counter.rows_written();
  }
}

}  // namespace crenel::backend::cuda
