// From keystream blocks to residues, host and device: the mappings stated in device/poly/kernels.h.
// Everything here is free of branches and table look-ups that depend on the random bits.
#pragma once

#include "math/modulus.h"
#include "random/chacha20.h"

namespace crenel::random {

/// Elements that one 64-byte block yields.
inline constexpr u32 kUniformPerBlock = 4;
inline constexpr u32 kTernaryPerBlock = 256;
inline constexpr u32 kErrorPerBlock = 8;
/// Pairs of coins of one centred binomial error; its variance is half of this.
inline constexpr u32 kErrorPairs = 21;

/// The block that holds element i of the limb of prime `prime_id`. Below 2^22 for N <= 2^17.
CRENEL_HD u32 uniform_block(u32 prime_id, u32 i, u32 log_n) {
  return prime_id * ((1u << log_n) / kUniformPerBlock) + i / kUniformPerBlock;
}

/// The 128-bit number of words 4 position .. 4 position + 3 (little-endian) mod q, in [0, q).
CRENEL_HD u32 uniform_residue(const ChaChaBlock& block, u32 position, const math::Modulus<u32>& m) {
  const u32* w = block.word + 4 * position;
  // Horner in radix 2^32; barrett_reduce takes any double word.
  u32 r = math::barrett_reduce<u32>(static_cast<u64>(w[3]) << 32 | w[2], m);
  r = math::barrett_reduce<u32>(static_cast<u64>(r) << 32 | w[1], m);
  return math::barrett_reduce<u32>(static_cast<u64>(r) << 32 | w[0], m);
}

/// Ternary integer number `position` < 256 of a block: one bit minus the next.
CRENEL_HD i32 ternary_value(const ChaChaBlock& block, u32 position) {
  const u32 pair = block.word[position / 16] >> (2 * (position % 16));
  return static_cast<i32>(pair & 1u) - static_cast<i32>((pair >> 1) & 1u);
}

/// Number of ones. In arithmetic, because a popcount without hardware support is a table look-up,
/// whose addresses would depend on secret bits.
CRENEL_HD u32 count_ones(u32 x) {
  x -= (x >> 1) & 0x55555555u;
  x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0fu;
  return (x * 0x01010101u) >> 24;
}

/// Centred binomial integer number `position` < 8 of a block, in [-21, 21].
CRENEL_HD i32 error_value(const ChaChaBlock& block, u32 position) {
  const u64 x = static_cast<u64>(block.word[2 * position + 1]) << 32 | block.word[2 * position];
  const u32 mask = (1u << kErrorPairs) - 1;
  return static_cast<i32>(count_ones(static_cast<u32>(x) & mask)) -
         static_cast<i32>(count_ones(static_cast<u32>(x >> kErrorPairs) & mask));
}

/// value mod q in [0, q) for |value| < q.
CRENEL_HD u32 small_residue(i32 value, u32 q) {
  const u32 negative = 0u - (static_cast<u32>(value) >> 31);  // all ones when < 0
  return static_cast<u32>(value) + (q & negative);
}

}  // namespace crenel::random
