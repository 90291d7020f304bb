// What the passes of a transform share: arguments, twiddles, and a row in one warp.
//
// Point index = row * 2^row_bits + column. The forward transform does its first stages on columns,
// the other ones on rows; the inverse does rows first. Within a pass the stages are grouped in
// rounds of at most four on the 16 values of a thread, with exchanges through shared memory.
#pragma once

#include "backends/cuda/poly/device/butterfly.cuh"
#include "backends/cuda/poly/device/views.cuh"
#include "backends/cuda/poly/tuning/ntt.h"

namespace crenel::backend::cuda {

struct TransformArgs {
  const PrimeConstants* primes;
  const uint2* roots;       ///< of this direction, Shoup pairs, [prime][N / 16]
  const uint4* last_roots;  ///< of this direction (host/last_roots.h), [prime][N / 16]
  const u32* small_roots;   ///< of small rings instead: all, times R, [prime][N]
  Poly<const u32> in;
  Poly<u32> out;
  u32 log_n;
  u32 components;
  u32 polys;  ///< components * batch
  u32 polys_per_block;
  u32 early;        ///< inverse passes: whether the launch after one may start when all blocks have
  u32 log_blocked;  ///< inverse passes: unless 0, between them values lie as blocked_place() says
  LimbBytes prime;  ///< of each output limb
  LimbBytes in_position;  ///< limb of `in` that belongs to each output limb
};

/// Limbs that a component of mod_up copies from the input instead of transforming.
struct OwnLimbs {
  LimbBytes component;   ///< component whose own limb this is, or kNone
  LimbBytes position;    ///< of the limb in `from`
  Poly<const u32> from;  ///< one component
};

/// Constants that the last stage of an inverse transform multiplies with, per output limb.
struct InverseScale {
  Pair c;       ///< scale / N
  Pair c_root;  ///< c * inverse_roots[1]
};

__device__ __forceinline__ ShoupTwiddles shoup_twiddles(const TransformArgs& args, u32 id,
                                                        u32 log_n) {
  return {args.roots + (u64(id) << (log_n - 4)), args.primes[id].q};
}
/// Of a table of last roots.
__device__ __forceinline__ const uint4* last_root(const uint4* table, u32 id, u32 node, u32 log_n) {
  const u32 nodes = 1u << (log_n - 4);
  return table + id * nodes + (node - nodes);
}
__device__ __forceinline__ LastTwiddles last_twiddles(const TransformArgs& args, u32 id, u32 node) {
  return {last_root(args.last_roots, id, node, args.log_n), shoup_twiddles(args, id, args.log_n),
          args.primes[id].q_inv};
}

// Tile of the row pass: 4 more words every 16, so that both 16 consecutive words a thread and one
// word a thread are free of bank conflicts; rows of 16 threads are moved apart by half the banks.
__device__ __forceinline__ u32 row_slot(u32 column) { return column + (column >> 4) * 4; }
template <u32 Bits>
inline constexpr u32 kRowTileStride = (5u << Bits) / 4 + (Bits < 9 ? 16 : 0);

__device__ __forceinline__ void read16(u32 (&x)[kPerThread], const u32* p) {
#pragma unroll
  for (u32 i = 0; i < 16; i += 4) {
    const uint4 v = load4(p + i);
    x[i] = v.x, x[i + 1] = v.y, x[i + 2] = v.z, x[i + 3] = v.w;
  }
}
__device__ __forceinline__ void write16(u32* p, const u32 (&x)[kPerThread]) {
#pragma unroll
  for (u32 i = 0; i < 16; i += 4) store4(p + i, make_uint4(x[i], x[i + 1], x[i + 2], x[i + 3]));
}

// The values i + e 2^(Bits-4) of a row, which thread i starts with.
template <u32 Bits>
__device__ __forceinline__ void read_row(u32 (&x)[kPerThread], const u32* from, u32 i) {
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) x[e] = from[i + (e << (Bits - 4))];
}

// Ends a row that nobody reads after its threads, and that all of them have read.
template <u32 Bits>
__device__ __forceinline__ void discard_row(const u32* row, u32 i) {
  constexpr u32 kLine = 32, kLines = (1u << Bits) / kLine;
  static_assert(kLines > 0 && kLines <= 1u << (Bits - 4));
  if (i < kLines) discard_line(row + i * kLine);
}

// Twiddles of the first round of every row of a block, in shared memory.
template <u32 Bits>
inline constexpr u32 kRowRound = Bits < 8 ? Bits - 4 : 4;  ///< stages of that round
template <u32 Bits>
inline constexpr u32 kRowHeapWords = kTileRows<Bits> * 2 << kRowRound<Bits>;

// Starts bringing the twiddles of the row of thread i; complete after wait_for_copies and a barrier
// of the warp.
template <u32 Bits>
__device__ __forceinline__ SharedTwiddles fetch_row_twiddles(u32* heaps, u32 row_in_block,
                                                             const ShoupTwiddles& roots, u32 node,
                                                             u32 i) {
  uint2* heap = reinterpret_cast<uint2*>(heaps) + (row_in_block << kRowRound<Bits>);
  constexpr u32 kThreads = 1u << (Bits - 4);
  for (u32 k = 1 + i; k < (1u << kRowRound<Bits>); k += kThreads) {
    const u32 t = 31 - __clz(k);
    copy_async<8>(heap + k, roots.table + (node << t) + (k - (1u << t)));
  }
  return {heap, roots.q};
}

// All stages of the row pass on the row that read_row gave; leaves canonical values in the tile.
// `node` is 2^column_bits + row, i the thread's number in its row; a row never leaves its warp.
template <u32 Bits>
__device__ __forceinline__ void forward_row(u32 (&x)[kPerThread], u32* tile,
                                            const SharedTwiddles& first, const ShoupTwiddles& roots,
                                            const LastTwiddles& last, u32 node, u32 i) {
  constexpr u32 kHigh = Bits - 4;
  const u32 q = roots.q;
  forward_round<kRowRound<Bits>>(x, first, 1, q);
  __syncwarp();
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) tile[row_slot(i + (e << kHigh))] = x[e];
  __syncwarp();
  if constexpr (Bits == 9) {
    const u32 base = (i >> 1) << 5 | (i & 1);
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) x[e] = tile[row_slot(base | e << 1)];
    forward_round<1>(x, roots, (node << 4) + (i >> 1), q);
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) tile[row_slot(base | e << 1)] = x[e];
    __syncwarp();
  }
  read16(x, tile + row_slot(16 * i));
  forward_round<4>(x, last, 1, q);
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) x[e] = reduce_once(x[e], q);
  write16(tile + row_slot(16 * i), x);
  __syncwarp();
}

// All stages of the inverse row pass on the row in the tile; leaves in x[e] what belongs to column
// i + e 2^(Bits-4). Twiddles that are on their way to shared memory are waited for.
template <u32 Bits>
__device__ __forceinline__ void inverse_row(u32 (&x)[kPerThread], u32* tile,
                                            const SharedTwiddles& first, const ShoupTwiddles& roots,
                                            const LastTwiddles& last, u32 node, u32 i) {
  constexpr u32 kHigh = Bits - 4;
  const u32 q = roots.q;
  __syncwarp();
  read16(x, tile + row_slot(16 * i));
  inverse_round<4>(x, last, 1, q);
  write16(tile + row_slot(16 * i), x);
  wait_for_copies();
  __syncwarp();
  if constexpr (Bits == 9) {
    const u32 base = (i >> 1) << 5 | (i & 1);
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) x[e] = tile[row_slot(base | e << 1)];
    inverse_round<1>(x, roots, (node << 4) + (i >> 1), q);
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) tile[row_slot(base | e << 1)] = x[e];
    __syncwarp();
  }
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) x[e] = tile[row_slot(i + (e << kHigh))];
  inverse_round<kRowRound<Bits>>(x, first, 1, q);
}

/// Where a thread works in the row pass.
template <u32 Bits>
struct RowPlace {
  static constexpr u32 kThreads = 1u << (Bits - 4);  ///< of a row
  u32 limb = blockIdx.z;
  u32 i = threadIdx.x % kThreads;
  u32 row = blockIdx.x * kTileRows<Bits> + threadIdx.x / kThreads;
  u32 start = row << Bits;

  __device__ __forceinline__ u32 node(u32 log_n) const { return (1u << (log_n - Bits)) + row; }
  __device__ __forceinline__ u32* tile(u32* tiles) const {
    return tiles + (threadIdx.x / kThreads) * kRowTileStride<Bits>;
  }
  __device__ __forceinline__ u32 row_in_block() const { return threadIdx.x / kThreads; }
  /// First twiddle of the thread's last round.
  __device__ __forceinline__ u32 last_node(u32 log_n) const {
    return (node(log_n) << (Bits - 4)) + i;
  }
  /// Column of the k-th of four groups of four values, coalesced over the threads of a row.
  __device__ __forceinline__ u32 at(u32 k) const { return 4 * (i + k * kThreads); }
};
/// The order in which blocks come to limbs: ascending, but for the last `moved` ones, which come
/// before the `passed` ones that precede them.
struct LimbOrder {
  u32 moved, passed;

  /// The last `moved` before the limbs that the last round of `resident` blocks has, whole or in
  /// part; first of all where there are no others.
  static LimbOrder before_last_round(u32 moved, u32 limbs, u64 blocks_of_limb, u64 resident) {
    const u64 round = (resident + blocks_of_limb - 1) / blocks_of_limb;
    return {moved, round < limbs - moved ? static_cast<u32>(round) : limbs - moved};
  }
  __host__ __device__ __forceinline__ u32 limb(u32 z, u32 limbs) const {
    const u32 first = limbs - moved - passed;
    return z < first ? z : z < first + moved ? z + passed : z - moved;
  }
};
/// The same in blocks of so many rows, limbs in this order.
template <u32 Bits>
__device__ __forceinline__ RowPlace<Bits> row_place(u32 rows, const LimbOrder& order) {
  RowPlace<Bits> place;
  place.limb = order.limb(blockIdx.z, gridDim.z);
  place.row = blockIdx.x * rows + place.row_in_block();
  place.start = place.row << Bits;
  return place;
}
template <u32 Bits>
inline constexpr u32 kRowTileWords = kTileRows<Bits> * kRowTileStride<Bits>;

}  // namespace crenel::backend::cuda
