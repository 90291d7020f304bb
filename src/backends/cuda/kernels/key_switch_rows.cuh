// Last stages of the transforms of all digits, fused with the inner product with a switching key:
// the digits in evaluation form are never written.
#pragma once

#include "backends/cuda/device/transform.cuh"

namespace crenel::backend::cuda {

/// args.in holds the digits after the column pass, args.components the digits of a batch entry;
/// args.out and `own` are addressed by limb plus first_limb.
struct KeySwitchTail {
  OwnLimbs own;
  Poly<const u32> key;  ///< batch entry = digit; limb position = prime id
  u32 first_limb;
};

/// Tile, and the key values of one digit that a block will need.
template <u32 Bits>
inline constexpr u32 kKeySwitchRowBytes = (kRowTileWords<Bits> + 2 * (kTileRows<Bits> << Bits)) * 4;

__device__ __forceinline__ uint4 multiply_add(uint4 acc, uint4 x, uint4 y, u32 q, u32 q_inv) {
  return make_uint4(add_mod(acc.x, mont_mul(x.x, y.x, q, q_inv), q),
                    add_mod(acc.y, mont_mul(x.y, y.y, q, q_inv), q),
                    add_mod(acc.z, mont_mul(x.z, y.z, q, q_inv), q),
                    add_mod(acc.w, mont_mul(x.w, y.w, q, q_inv), q));
}

/// Grid: x tiles of rows, y limbs, z batch. The key values of a digit travel to shared memory while
/// its transform runs; every thread reads only what it has fetched itself.
template <u32 Bits>
__global__ void __launch_bounds__(kRowThreads<Bits>, kKeySwitchBlocksPerSm)
    key_switch_rows(const __grid_constant__ TransformArgs args,
                    const __grid_constant__ KeySwitchTail tail) {
  extern __shared__ __align__(16) u32 shared[];
  const RowPlace<Bits> place;
  const u32 limb = place.limb, id = args.prime.at[limb], batch = blockIdx.z;
  const u32 q = args.primes[id].q, q_inv = args.primes[id].q_inv;
  const u32 own_digit = tail.own.component.at[limb];
  const u64 policy = streaming_policy();
  u32* key0 = shared + kRowTileWords<Bits> + 4 * threadIdx.x;
  u32* key1 = key0 + (kTileRows<Bits> << Bits);
  constexpr u32 kStep = 4 * kRowThreads<Bits>;
  u32* tile = place.tile(shared);
  uint4 acc[2][4] = {};
  for (u32 d = 0; d < args.components; ++d) {
#pragma unroll
    for (u32 k = 0; k < 4; ++k) {
      const u32 at = place.start + place.at(k);
      copy_async(key0 + k * kStep, tail.key.limb(d, 0, id, args.log_n) + at, policy);
      copy_async(key1 + k * kStep, tail.key.limb(d, 1, id, args.log_n) + at, policy);
    }
    if (d == own_digit) {
      const u32* from = tail.own.from.limb(batch, 0, tail.own.position.at[limb], args.log_n);
      __syncwarp();
#pragma unroll
      for (u32 k = 0; k < 4; ++k)
        store4(tile + row_slot(place.at(k)), load4(from + place.start + place.at(k)));
    } else {
      const u32* from = args.in.limb(batch, d, args.in_position.at[limb], args.log_n) + place.start;
      forward_row<Bits>(from, tile, shoup_twiddles(args, id, args.log_n), last_twiddles(args, id),
                        place.node(args.log_n), place.i);
    }
    wait_for_copies();
#pragma unroll
    for (u32 k = 0; k < 4; ++k) {
      const uint4 x = load4(tile + row_slot(place.at(k)));
      acc[0][k] = multiply_add(acc[0][k], x, load4(key0 + k * kStep), q, q_inv);
      acc[1][k] = multiply_add(acc[1][k], x, load4(key1 + k * kStep), q, q_inv);
    }
  }
  const u32 r2 = args.primes[id].r2;
#pragma unroll
  for (u32 c = 0; c < 2; ++c)
#pragma unroll
    for (u32 k = 0; k < 4; ++k) {
      const uint4 v = acc[c][k];
      store4(
          args.out.limb(batch, c, tail.first_limb + limb, args.log_n) + place.start + place.at(k),
          make_uint4(mont_mul(v.x, r2, q, q_inv), mont_mul(v.y, r2, q, q_inv),
                     mont_mul(v.z, r2, q, q_inv), mont_mul(v.w, r2, q, q_inv)));
    }
}

}  // namespace crenel::backend::cuda
