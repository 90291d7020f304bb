// Integers of a width, plain: edges, random pairs, and what the operations mean.
#pragma once

#include <vector>

#include "crenel/tfhe/integer.h"
#include "support/random.h"

namespace crenel::test {

inline u64 width_mask(u32 bits) { return bits == 64 ? ~u64(0) : (u64(1) << bits) - 1; }

/// The two's complement value of the low `bits` bits.
inline i64 as_signed(u64 value, u32 bits) {
  const u64 sign = u64(1) << (bits - 1);
  return static_cast<i64>(((value & width_mask(bits)) ^ sign) - sign);
}

inline constexpr tfhe::Comparison kComparisons[] = {
    tfhe::Comparison::equal,      tfhe::Comparison::not_equal, tfhe::Comparison::less,
    tfhe::Comparison::less_equal, tfhe::Comparison::greater,   tfhe::Comparison::greater_equal};

inline bool holds(tfhe::Comparison comparison, u64 a, u64 b, u32 bits = 64,
                  bool is_signed = false) {
  const bool less = is_signed ? as_signed(a, bits) < as_signed(b, bits) : a < b;
  switch (comparison) {
    case tfhe::Comparison::equal:
      return a == b;
    case tfhe::Comparison::not_equal:
      return a != b;
    case tfhe::Comparison::less:
      return less;
    case tfhe::Comparison::less_equal:
      return less || a == b;
    case tfhe::Comparison::greater:
      return !less && a != b;
    case tfhe::Comparison::greater_equal:
      return !less;
  }
  return false;
}

/// Pairs that carry, borrow and compare in every way: all pairs of edges, then `count` random
/// pairs, some of which agree in their high blocks.
inline void integer_pairs(std::vector<u64>& a, std::vector<u64>& b, u32 bits, u32 count, Rng& rng) {
  const u64 mask = width_mask(bits), top = u64(1) << (bits - 1);
  const std::vector<u64> edges{0, 1, 3, mask, mask - 1, top, top - 1, 0x5555555555555555u & mask};
  for (const u64 x : edges)
    for (const u64 y : edges) a.push_back(x & mask), b.push_back(y & mask);
  for (u32 i = 0; i < count; ++i) {
    const u64 x = rng() & mask;
    const u64 low = (u64(1) << (rng() % bits)) - 1;
    a.push_back(x);
    b.push_back(i % 2 ? rng() & mask : (x ^ (rng() & low)) & mask);
    if (i % 5 == 0) b.back() = ~x & mask;  // a carry through all blocks once 1 is added
  }
}

}  // namespace crenel::test
