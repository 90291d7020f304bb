// The two passes of a transform of 2^10 .. 2^17 points, forward and inverse.
//
// Point index = row * 2^row_bits + column. The forward transform does its first stages on columns,
// the other ones on rows; the inverse does rows first. Within a pass the stages are grouped in
// rounds of at most four on the 16 values of a thread, with exchanges through shared memory.
#pragma once

#include "backends/cuda/device/butterfly.cuh"
#include "backends/cuda/device/views.cuh"
#include "backends/cuda/tuning/ntt.h"

namespace crenel::backend::cuda {

struct TransformArgs {
  const PrimeConstants* primes;
  const u32* roots;  ///< of this direction, times R, [prime][N]
  Poly<const u32> in;
  Poly<u32> out;
  u32 log_n;
  u32 components;
  u32 polys;  ///< components * batch
  u32 polys_per_block;
  LimbBytes prime;        ///< of each output limb
  LimbBytes in_position;  ///< limb of `in` that belongs to each output limb
};

/// What else a forward pass does.
struct ForwardExtra {
  LimbBytes own;            ///< component that is copied from `copy` instead, or kNone
  Poly<const u32> copy;     ///< one component
  LimbBytes copy_position;  ///< limb of `copy`
  // divide: out = transform + x * x_scale + addend
  Poly<const u32> x;
  LimbBytes x_position;  ///< or kNone
  const u32* x_scale;    ///< per output limb, times R
  Poly<const u32> addend;
  u32 addend_components;
};

/// Constants that the last stage of an inverse transform multiplies with, per output limb.
struct InverseScale {
  u32 c;       ///< scale / N, times R
  u32 c_root;  ///< c * inverse_roots[1]
};

enum class ForwardTail { plain, copy_own, divide };
enum class InverseTail { canonical, centred };

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

template <u32 LogN, ForwardTail Tail>
__global__ void __launch_bounds__(kColumnThreads<kColumnBits<LogN>>, kNttBlocksPerSm)
    column_forward(const __grid_constant__ TransformArgs args,
                   const __grid_constant__ ForwardExtra extra) {
  constexpr u32 Bits = kColumnBits<LogN>, kRow = kRowBits<LogN>;
  constexpr u32 kColumns = kTileColumns<Bits>;
  constexpr u32 kHigh = Bits - 4;
  __shared__ u32 tile[kColumnTileWords<Bits>];
  const u32 limb = blockIdx.y;
  const u32 id = args.prime.at[limb];
  const u32 q = args.primes[id].q, q_inv = args.primes[id].q_inv;
  const u32* roots = args.roots + (u64(id) << LogN);
  const u32 lane = threadIdx.x % kColumns, group = threadIdx.x / kColumns;
  const u32 column = blockIdx.x * kColumns + lane;
  const u32 first = blockIdx.z * args.polys_per_block;
  const u32 last = min(first + args.polys_per_block, args.polys);
  for (u32 p = first; p < last; ++p) {
    const u32 b = p / args.components, c = p % args.components;
    if (Tail == ForwardTail::copy_own && extra.own.at[limb] == c) continue;
    const u32* from = args.in.limb(b, c, args.in_position.at[limb], LogN) + column;
    u32* to = args.out.limb(b, c, limb, LogN) + column;
    u32 x[kPerThread];
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) x[e] = from[(group << kRow) + (e << (kHigh + kRow))];
    forward_round<kHigh>(x, roots, 1, q, q_inv);
    if (p != first) __syncthreads();
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) tile[split_slot<Bits>(group, e, lane)] = x[e];
    __syncthreads();
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) x[e] = tile[joined_slot<Bits>(group, e, lane)];
    forward_round<4>(x, roots, (1u << kHigh) + group, q, q_inv);
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) to[(group << (4 + kRow)) + (e << kRow)] = x[e];
  }
}

template <u32 LogN, InverseTail Tail>
__global__ void __launch_bounds__(kColumnThreads<kColumnBits<LogN>>, kNttBlocksPerSm)
    column_inverse(const __grid_constant__ TransformArgs args, const InverseScale* scales) {
  constexpr u32 Bits = kColumnBits<LogN>, kRow = kRowBits<LogN>;
  constexpr u32 kColumns = kTileColumns<Bits>;
  constexpr u32 kHigh = Bits - 4;
  __shared__ u32 tile[kColumnTileWords<Bits>];
  const u32 limb = blockIdx.y;
  const u32 id = args.prime.at[limb];
  const u32 q = args.primes[id].q, q_inv = args.primes[id].q_inv;
  const u32* roots = args.roots + (u64(id) << LogN);
  const u32 scale = scales ? scales[limb].c : args.primes[id].n_inv;
  const u32 scale_root = scales ? scales[limb].c_root : args.primes[id].n_inv_root;
  const u32 lane = threadIdx.x % kColumns, group = threadIdx.x / kColumns;
  const u32 column = blockIdx.x * kColumns + lane;
  const u32 first = blockIdx.z * args.polys_per_block;
  const u32 last = min(first + args.polys_per_block, args.polys);
  for (u32 p = first; p < last; ++p) {
    const u32 b = p / args.components, c = p % args.components;
    const u32* from = args.in.limb(b, c, args.in_position.at[limb], LogN) + column;
    u32* to = args.out.limb(b, c, limb, LogN) + column;
    u32 x[kPerThread];
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) x[e] = from[(group << (4 + kRow)) + (e << kRow)];
    inverse_round<4>(x, roots, (1u << kHigh) + group, q, q_inv);
    if (p != first) __syncthreads();
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) tile[joined_slot<Bits>(group, e, lane)] = x[e];
    __syncthreads();
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) x[e] = tile[split_slot<Bits>(group, e, lane)];
    // A round of fewer than four stages leaves pairs at distance 8 only in its last stage.
    inverse_round_scaled<kHigh>(x, roots, q, q_inv, scale, scale_root);
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) {
      const u32 v = Tail == InverseTail::centred ? static_cast<u32>(centre(x[e], q)) : x[e];
      to[(group << kRow) + (e << (kHigh + kRow))] = v;
    }
  }
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

// All stages of the row pass on the row that starts at `from`; leaves canonical values in the tile.
// `node` is 2^column_bits + row, i the thread's number in its row; a row never leaves its warp.
template <u32 Bits>
__device__ __forceinline__ void forward_row(const u32* from, u32* tile, const u32* roots, u32 node,
                                            u32 i, u32 q, u32 q_inv) {
  constexpr u32 kHigh = Bits - 4;
  u32 x[kPerThread];
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) x[e] = from[i + (e << kHigh)];
  forward_round<(kHigh < 4 ? kHigh : 4)>(x, roots, node, q, q_inv);
  __syncwarp();
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) tile[row_slot(i + (e << kHigh))] = x[e];
  __syncwarp();
  if constexpr (Bits == 9) {
    const u32 base = (i >> 1) << 5 | (i & 1);
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) x[e] = tile[row_slot(base | e << 1)];
    forward_round<1>(x, roots, (node << 4) + (i >> 1), q, q_inv);
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) tile[row_slot(base | e << 1)] = x[e];
    __syncwarp();
  }
  read16(x, tile + row_slot(16 * i));
  forward_round<4>(x, roots, (node << kHigh) + i, q, q_inv);
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) x[e] = reduce_once(x[e], q);
  write16(tile + row_slot(16 * i), x);
  __syncwarp();
}

template <u32 Bits, ForwardTail Tail>
__global__ void __launch_bounds__(kRowThreads<Bits>, kNttBlocksPerSm)
    row_forward(const __grid_constant__ TransformArgs args,
                const __grid_constant__ ForwardExtra extra) {
  constexpr u32 kThreadsPerRow = 1u << (Bits - 4);
  __shared__ __align__(16) u32 tiles[kTileRows<Bits> * kRowTileStride<Bits>];
  const u32 limb = blockIdx.y;
  const u32 id = args.prime.at[limb];
  const u32 q = args.primes[id].q, q_inv = args.primes[id].q_inv;
  const u32* roots = args.roots + (u64(id) << args.log_n);
  const u32 i = threadIdx.x % kThreadsPerRow, r = threadIdx.x / kThreadsPerRow;
  const u32 row = blockIdx.x * kTileRows<Bits> + r;
  const u32 node = (1u << (args.log_n - Bits)) + row;
  u32* tile = tiles + r * kRowTileStride<Bits>;
  const u32 first = blockIdx.z * args.polys_per_block;
  const u32 last = min(first + args.polys_per_block, args.polys);
  for (u32 p = first; p < last; ++p) {
    const u32 b = p / args.components, c = p % args.components;
    const u32 start = row << Bits;
    u32* to = args.out.limb(b, c, limb, args.log_n) + start;
    if (Tail == ForwardTail::copy_own && extra.own.at[limb] == c) {
      const u32* own = extra.copy.limb(b, 0, extra.copy_position.at[limb], args.log_n) + start;
#pragma unroll
      for (u32 k = 0; k < 4; ++k) {
        const u32 at = 4 * (i + k * kThreadsPerRow);
        store4(to + at, load4(own + at));
      }
      continue;
    }
    const u32* from = args.in.limb(b, c, args.in_position.at[limb], args.log_n) + start;
    forward_row<Bits>(from, tile, roots, node, i, q, q_inv);
    const u32 xp = Tail == ForwardTail::divide ? extra.x_position.at[limb] : kNone;
    const u32 x_scale = Tail == ForwardTail::divide ? extra.x_scale[limb] : 0;
#pragma unroll
    for (u32 k = 0; k < 4; ++k) {
      const u32 at = 4 * (i + k * kThreadsPerRow);
      uint4 v = load4(tile + row_slot(at));
      if (Tail == ForwardTail::divide && xp != kNone) {
        const uint4 y = load4(extra.x.limb(b, c, xp, args.log_n) + start + at);
        v.x = add_mod(v.x, mont_mul(y.x, x_scale, q, q_inv), q);
        v.y = add_mod(v.y, mont_mul(y.y, x_scale, q, q_inv), q);
        v.z = add_mod(v.z, mont_mul(y.z, x_scale, q, q_inv), q);
        v.w = add_mod(v.w, mont_mul(y.w, x_scale, q, q_inv), q);
      }
      if (Tail == ForwardTail::divide && c < extra.addend_components) {
        const uint4 y = load4(extra.addend.limb(b, c, limb, args.log_n) + start + at);
        v.x = add_mod(v.x, y.x, q);
        v.y = add_mod(v.y, y.y, q);
        v.z = add_mod(v.z, y.z, q);
        v.w = add_mod(v.w, y.w, q);
      }
      store4(to + at, v);
    }
  }
}

template <u32 Bits>
__global__ void __launch_bounds__(kRowThreads<Bits>, kNttBlocksPerSm)
    row_inverse(const __grid_constant__ TransformArgs args) {
  constexpr u32 kHigh = Bits - 4;
  constexpr u32 kThreadsPerRow = 1u << kHigh;
  __shared__ __align__(16) u32 tiles[kTileRows<Bits> * kRowTileStride<Bits>];
  const u32 limb = blockIdx.y;
  const u32 id = args.prime.at[limb];
  const u32 q = args.primes[id].q, q_inv = args.primes[id].q_inv;
  const u32* roots = args.roots + (u64(id) << args.log_n);
  const u32 i = threadIdx.x % kThreadsPerRow, r = threadIdx.x / kThreadsPerRow;
  const u32 row = blockIdx.x * kTileRows<Bits> + r;
  const u32 node = (1u << (args.log_n - Bits)) + row;
  u32* tile = tiles + r * kRowTileStride<Bits>;
  const u32 first = blockIdx.z * args.polys_per_block;
  const u32 last = min(first + args.polys_per_block, args.polys);
  for (u32 p = first; p < last; ++p) {
    const u32 b = p / args.components, c = p % args.components;
    const u32* from = args.in.limb(b, c, args.in_position.at[limb], args.log_n) + (row << Bits);
    u32* to = args.out.limb(b, c, limb, args.log_n) + (row << Bits);
    u32 x[kPerThread];
#pragma unroll
    for (u32 k = 0; k < 4; ++k) {
      const uint4 v = load4(from + 4 * (i + k * kThreadsPerRow));
      x[4 * k] = v.x, x[4 * k + 1] = v.y, x[4 * k + 2] = v.z, x[4 * k + 3] = v.w;
    }
    __syncwarp();
#pragma unroll
    for (u32 k = 0; k < 4; ++k)
      store4(tile + row_slot(4 * (i + k * kThreadsPerRow)),
             make_uint4(x[4 * k], x[4 * k + 1], x[4 * k + 2], x[4 * k + 3]));
    __syncwarp();
    read16(x, tile + row_slot(16 * i));
    inverse_round<4>(x, roots, (node << kHigh) + i, q, q_inv);
    write16(tile + row_slot(16 * i), x);
    __syncwarp();
    if constexpr (Bits == 9) {
      const u32 base = (i >> 1) << 5 | (i & 1);
#pragma unroll
      for (u32 e = 0; e < kPerThread; ++e) x[e] = tile[row_slot(base | e << 1)];
      inverse_round<1>(x, roots, (node << 4) + (i >> 1), q, q_inv);
#pragma unroll
      for (u32 e = 0; e < kPerThread; ++e) tile[row_slot(base | e << 1)] = x[e];
      __syncwarp();
    }
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) x[e] = tile[row_slot(i + (e << kHigh))];
    inverse_round<(kHigh < 4 ? kHigh : 4)>(x, roots, node, q, q_inv);
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) to[i + (e << kHigh)] = x[e];
  }
}

}  // namespace crenel::backend::cuda
