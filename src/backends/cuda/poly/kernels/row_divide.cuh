// Last stages of the transform of a remainder, fused with the rest of a division by primes.
#pragma once

#include "backends/cuda/poly/device/transform.cuh"

namespace crenel::backend::cuda {

/// out = transform + x * x_scale + addend
struct DivideTail {
  Poly<const u32> x;
  LimbBytes x_position;  ///< limb of x for each output limb, or kNone
  const u32* x_scale;    ///< per output limb, times R
  Poly<const u32> addend;
  u32 addend_components;
  u32 x_ends;  ///< nobody reads after
};

/// Tile, and the values of x and the addend that a block will need.
template <u32 Bits>
inline constexpr u32 kRowDivideBytes =
    (kRowTileWords<Bits> + kRowHeapWords<Bits> + 2 * (kTileRows<Bits> << Bits)) * 4;

/// Grid as row_forward, one polynomial a block. x and the addend travel to shared memory while the
/// transform runs; every thread reads only what it has fetched itself. They are older than the
/// launch before this one, a conversion or the column pass after one, and do not wait for its end.
template <u32 Bits>
__global__ void __launch_bounds__(kRowThreads<Bits>, kNttBlocksPerSm)
    row_divide(const __grid_constant__ TransformArgs args,
               const __grid_constant__ DivideTail tail) {
  u32* const shared = dynamic_shared();
  const RowPlace<Bits> place;
  const u32 limb = place.limb, id = args.prime.at[limb];
  const u32 b = blockIdx.y / args.components, c = blockIdx.y % args.components;
  u32* heaps = shared + kRowTileWords<Bits>;
  u32* x = heaps + kRowHeapWords<Bits> + 4 * threadIdx.x;
  const u32 node = place.node(args.log_n);
  const ShoupTwiddles roots = shoup_twiddles(args, id, args.log_n);
  const SharedTwiddles first_round =
      fetch_row_twiddles<Bits>(heaps, place.row_in_block(), roots, node, place.i);
  commit_copies();
  u32* y = x + (kTileRows<Bits> << Bits);
  constexpr u32 kStep = 4 * kRowThreads<Bits>;
  const u32 x_position = tail.x_position.at[limb];
  const bool has_x = x_position != kNone, has_addend = c < tail.addend_components;
#pragma unroll
  for (u32 k = 0; k < 4; ++k) {
    const u32 at = place.start + place.at(k);
    if (has_x) copy_async<16>(x + k * kStep, tail.x.limb(b, c, x_position, args.log_n) + at);
    if (has_addend) copy_async<16>(y + k * kStep, tail.addend.limb(b, c, limb, args.log_n) + at);
  }
  const u32* from = args.in.limb(b, c, args.in_position.at[limb], args.log_n) + place.start;
  u32* to = args.out.limb(b, c, limb, args.log_n) + place.start;
  u32* tile = place.tile(shared);
  const LastTwiddles last_round = last_twiddles(args, id, place.last_node(args.log_n));
  commit_copies();
  begin_kernel();
  u32 values[kPerThread];
  read_row<Bits>(values, from, place.i);
  wait_for_copies_but<1>();
  __syncwarp();
  forward_row<Bits>(values, tile, first_round, roots, last_round, node, place.i);
  wait_for_copies();
  if (tail.x_ends != 0 && has_x) {
    __syncwarp();
    discard_row<Bits>(tail.x.limb(b, c, x_position, args.log_n) + place.start, place.i);
  }
  const u32 q = args.primes[id].q, q_inv = args.primes[id].q_inv, scale = tail.x_scale[limb];
#pragma unroll
  for (u32 k = 0; k < 4; ++k) {
    uint4 v = load4(tile + row_slot(place.at(k)));
    if (has_x) {
      const uint4 s = load4(x + k * kStep);
      v.x = add_mod(v.x, mont_mul(s.x, scale, q, q_inv), q);
      v.y = add_mod(v.y, mont_mul(s.y, scale, q, q_inv), q);
      v.z = add_mod(v.z, mont_mul(s.z, scale, q, q_inv), q);
      v.w = add_mod(v.w, mont_mul(s.w, scale, q, q_inv), q);
    }
    if (has_addend) {
      const uint4 s = load4(y + k * kStep);
      v.x = add_mod(v.x, s.x, q);
      v.y = add_mod(v.y, s.y, q);
      v.z = add_mod(v.z, s.z, q);
      v.w = add_mod(v.w, s.w, q);
    }
    store4(to + place.at(k), v);
  }
}

}  // namespace crenel::backend::cuda
