// The row pass of 2^10 .. 2^17 points, forward and inverse. Grid: x tiles of rows, y groups of
// polynomials, z limbs.
#pragma once

#include "backends/cuda/poly/device/transform.cuh"

namespace crenel::backend::cuda {

/// Last stages; own limbs of components are copied.
template <u32 Bits>
__global__ void __launch_bounds__(kRowThreads<Bits>, kNttBlocksPerSm)
    row_forward(const __grid_constant__ TransformArgs args, const __grid_constant__ OwnLimbs own) {
  begin_kernel();
  __shared__ __align__(16) u32 tiles[kRowTileWords<Bits>];
  __shared__ __align__(16) u32 heaps[kRowHeapWords<Bits>];
  const RowPlace<Bits> place;
  const u32 limb = place.limb, id = args.prime.at[limb];
  const ShoupTwiddles roots = shoup_twiddles(args, id, args.log_n);
  const u32 node = place.node(args.log_n);
  const SharedTwiddles first_round =
      fetch_row_twiddles<Bits>(heaps, place.row_in_block(), roots, node, place.i);
  const LastTwiddles last_round = last_twiddles(args, id, place.last_node(args.log_n));
  u32* tile = place.tile(tiles);
  const u32 first = blockIdx.y * args.polys_per_block;
  const u32 last = min(first + args.polys_per_block, args.polys);
  for (u32 p = first; p < last; ++p) {
    const u32 b = p / args.components, c = p % args.components;
    u32* to = args.out.limb(b, c, limb, args.log_n) + place.start;
    if (own.component.at[limb] == c) {
      const u32* from = own.from.limb(b, 0, own.position.at[limb], args.log_n) + place.start;
#pragma unroll
      for (u32 k = 0; k < 4; ++k) store4(to + place.at(k), load4(from + place.at(k)));
      continue;
    }
    const u32* from = args.in.limb(b, c, args.in_position.at[limb], args.log_n) + place.start;
    u32 x[kPerThread];
    read_row<Bits>(x, from, place.i);
    wait_for_copies();
    __syncwarp();
    forward_row<Bits>(x, tile, first_round, roots, last_round, node, place.i);
#pragma unroll
    for (u32 k = 0; k < 4; ++k) store4(to + place.at(k), load4(tile + row_slot(place.at(k))));
  }
}

template <u32 Bits>
__global__ void __launch_bounds__(kRowThreads<Bits>, kNttBlocksPerSm)
    row_inverse(const __grid_constant__ TransformArgs args) {
  begin_kernel();
  constexpr u32 kHigh = Bits - 4;
  __shared__ __align__(16) u32 tiles[kRowTileWords<Bits>];
  __shared__ __align__(16) u32 heaps[kRowHeapWords<Bits>];
  const RowPlace<Bits> place;
  const u32 id = args.prime.at[place.limb];
  const u32 q = args.primes[id].q;
  const ShoupTwiddles roots = shoup_twiddles(args, id, args.log_n);
  const u32 i = place.i, node = place.node(args.log_n);
  u32* tile = place.tile(tiles);
  const LastTwiddles last_round = last_twiddles(args, id, place.last_node(args.log_n));
  const SharedTwiddles first_round =
      fetch_row_twiddles<Bits>(heaps, place.row_in_block(), roots, node, i);
  const u32 first = blockIdx.y * args.polys_per_block;
  const u32 last = min(first + args.polys_per_block, args.polys);
  for (u32 p = first; p < last; ++p) {
    const u32 b = p / args.components, c = p % args.components;
    const u32* from = args.in.limb(b, c, args.in_position.at[place.limb], args.log_n) + place.start;
    u32* to = args.out.limb(b, c, place.limb, args.log_n) + place.start;
    u32 x[kPerThread];
#pragma unroll
    for (u32 k = 0; k < 4; ++k) {
      const uint4 v = load4(from + place.at(k));
      x[4 * k] = v.x, x[4 * k + 1] = v.y, x[4 * k + 2] = v.z, x[4 * k + 3] = v.w;
    }
    __syncwarp();
#pragma unroll
    for (u32 k = 0; k < 4; ++k)
      store4(tile + row_slot(place.at(k)),
             make_uint4(x[4 * k], x[4 * k + 1], x[4 * k + 2], x[4 * k + 3]));
    __syncwarp();
    read16(x, tile + row_slot(16 * i));
    inverse_round<4>(x, last_round, 1, q);
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
    inverse_round<kRowRound<Bits>>(x, first_round, 1, q);
#pragma unroll
    for (u32 e = 0; e < kPerThread; ++e) to[i + (e << kHigh)] = x[e];
  }
}

}  // namespace crenel::backend::cuda
