// Both passes of the inverse transform of 2^14 .. 2^16 points in one launch, a limb in a cluster of
// blocks: what the row pass makes goes straight into the tiles of the column pass, in the shared
// memory of the block that has those columns.
#pragma once

#include <algorithm>

#include "backends/cuda/poly/kernels/ntt_columns.cuh"
#include "backends/cuda/poly/kernels/ntt_rows.cuh"

namespace crenel::backend::cuda {

// A test that runs kernels on the host brings its own.
#if defined(__CUDACC__)
// Two halves of a barrier of the cluster: what was written before the first is visible after the
// second.
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
// The first half where nothing was written.
__device__ __forceinline__ void cluster_begin() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
// To the place `here` of the shared memory of another block.
__device__ __forceinline__ void cluster_store(u32* here, u32 rank, u32 value) {
  const u32 address = static_cast<u32>(__cvta_generic_to_shared(here));
  asm volatile(
      "{\n\t.reg .u32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\t"
      "st.shared::cluster.u32 [there], %2;\n\t}" ::"r"(address),
      "r"(rank), "r"(value)
      : "memory");
}
__device__ __forceinline__ u32* cluster_memory() {
  extern __shared__ __align__(16) u32 cluster_shared[];
  return cluster_shared;
}
#endif

// Words of dynamic shared memory: rows and columns apart, since other blocks write columns while
// this one still transforms rows.
template <u32 LogN>
struct JointShape {
  static constexpr u32 kRow = kRowBits<LogN>, kColumn = kColumnBits<LogN>;
  static constexpr u32 kRowHeap = kRowTileWords<kRow>;
  static constexpr u32 kTile = kRowHeap + kRowHeapWords<kRow>;
  static constexpr u32 kColumnHeap = kTile + kColumnTileWords<kColumn>;
  static constexpr u32 kBytes = 4 * (kColumnHeap + (2u << kColumn));
  static_assert(kRowThreads<kRow> == kColumnThreads<kColumn>);
};

// The rows of this block, into the tiles of all blocks of the cluster.
template <u32 LogN>
__device__ __forceinline__ void joint_rows(const TransformArgs& args, const u32* from, u32 id,
                                           u32* shared) {
  using Shape = JointShape<LogN>;
  constexpr u32 Bits = Shape::kRow, kHigh = Bits - 4, kColumns = kTileColumns<Shape::kColumn>;
  const RowPlace<Bits> place;
  const ShoupTwiddles roots = shoup_twiddles(args, id, LogN);
  const u32 node = place.node(LogN);
  const LastTwiddles last = last_twiddles(args, id, place.last_node(LogN));
  const SharedTwiddles first = fetch_row_twiddles<Bits>(shared + Shape::kRowHeap,
                                                        place.row_in_block(), roots, node, place.i);
  u32 x[kPerThread];
  read_quads<Bits>(x, from + place.start, place);
  inverse_row<Bits>(x, place.tile(shared), first, roots, last, node, place);
  // Value i + e 2^kHigh of a row is column (i + e 2^kHigh) % kColumns of block e / kEach.
  constexpr u32 kEach = kColumns >> kHigh;
  u32* to = shared + Shape::kTile + place.i +
            joined_slot<Shape::kColumn>(place.row / 16, place.row % 16, 0);
  cluster_wait();
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) cluster_store(to + (e % kEach << kHigh), e / kEach, x[e]);
}

// Grid: x the blocks of a cluster, y polynomials, z limbs.
template <u32 LogN, InverseTail Tail>
__global__ void __cluster_dims__(joint_tiles(LogN), 1, 1)
    __launch_bounds__(kRowThreads<kRowBits<LogN>>, kNttBlocksPerSm)
        joint_inverse(const __grid_constant__ TransformArgs args, const InverseScale* scales) {
  using Shape = JointShape<LogN>;
  cluster_begin();  // this block is there, and may be written to
  begin_kernel();
  u32* shared = cluster_memory();
  u32* tile = shared + Shape::kTile;
  const u32 limb = blockIdx.z;
  const u32 b = blockIdx.y / args.components, c = blockIdx.y % args.components;
  const u32 id = args.prime.at[limb];
  joint_rows<LogN>(args, args.in.limb(b, c, args.in_position.at[limb], LogN), id, shared);
  cluster_arrive();
  const SharedTwiddles twiddles = fetch_column_twiddles<Shape::kColumn>(
      reinterpret_cast<uint2*>(shared + Shape::kColumnHeap), shoup_twiddles(args, id, LogN));
  const InverseScale scale = scale_of<Tail>(scales, limb, args.primes[id]);
  const ColumnPlace<LogN> place(blockIdx.x);
  cluster_wait();
  u32 x[kPerThread];
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e)
    x[e] = tile[joined_slot<Shape::kColumn>(place.group, e, place.lane)];
  inverse_column<LogN, Tail>(args.out.limb(b, c, limb, LogN), x, tile, twiddles, scale, place);
}

}  // namespace crenel::backend::cuda
