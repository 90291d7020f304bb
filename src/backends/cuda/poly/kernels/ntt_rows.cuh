// The row pass of 2^10 .. 2^17 points, forward and inverse. Grid: x tiles of rows, y groups of
// polynomials, z limbs.
#pragma once

#include "backends/cuda/poly/device/row_source.cuh"
#include "backends/cuda/poly/device/tiled_sources.cuh"

namespace crenel::backend::cuda {

/// Last stages; own limbs of components are copied.
template <u32 Bits>
__global__ void __launch_bounds__(kRowThreads<Bits>, kNttBlocksPerSm)
    row_forward(const __grid_constant__ TransformArgs args, const __grid_constant__ OwnLimbs own) {
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
  begin_kernel();
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

/// First stages, of the rows that Source makes.
template <u32 Bits, class Source>
__global__ void __launch_bounds__(kRowThreads<Bits>, kNttBlocksPerSm)
    row_inverse(const __grid_constant__ TransformArgs args, const __grid_constant__ Source source) {
  constexpr u32 kHigh = Bits - 4;
  __shared__ __align__(16) u32 tiles[kRowTileWords<Bits>];
  __shared__ __align__(16) u32 heaps[kRowHeapWords<Bits>];
  const RowPlace<Bits> place;
  const u32 id = args.prime.at[place.limb];
  const ShoupTwiddles roots = shoup_twiddles(args, id, args.log_n);
  const u32 i = place.i, node = place.node(args.log_n);
  u32* tile = place.tile(tiles);
  const LastTwiddles last_round = last_twiddles(args, id, place.last_node(args.log_n));
  const SharedTwiddles first_round =
      fetch_row_twiddles<Bits>(heaps, place.row_in_block(), roots, node, i);
  begin_kernel();  // after the tables, which no kernel writes
  if (args.early != 0) release_next();
  const u32 first = blockIdx.y * args.polys_per_block;
  const u32 last = min(first + args.polys_per_block, args.polys);
  for (u32 p = first; p < last; ++p) {
    const u32 b = p / args.components, c = p % args.components;
    const auto row = source.row(args, b, c, place.limb, place.start);
    u32* to = args.out.limb(b, c, place.limb, args.log_n);
    uint4 quads[4];
    row.load(quads, place);
    __syncwarp();
#pragma unroll
    for (u32 k = 0; k < 4; ++k) store4(tile + row_slot(place.at(k)), quads[k]);
    u32 x[kPerThread];
    inverse_row<Bits>(x, tile, first_round, roots, last_round, node, i);
    if (args.log_blocked != 0) {
#pragma unroll
      for (u32 e = 0; e < kPerThread; ++e)
        to[blocked_place(args.log_blocked, place.start >> Bits, i + (e << kHigh))] = x[e];
    } else {
#pragma unroll
      for (u32 e = 0; e < kPerThread; ++e) to[place.start + i + (e << kHigh)] = x[e];
    }
  }
}

}  // namespace crenel::backend::cuda
