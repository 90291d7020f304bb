// Primality and enumeration of NTT primes (p = 1 mod 2N).
#pragma once

#include <cstddef>
#include <vector>

#include "crenel/core/types.h"

namespace crenel::math {

/// Deterministic for every 64-bit integer.
bool is_prime(u64 n);

/// All primes p = 1 mod `two_n` with low <= p < high, ascending. `two_n` is a power of two.
std::vector<u64> ntt_primes(u64 low, u64 high, u64 two_n);

/// The `count` primes p = 1 mod `two_n` in [low, high) nearest to `center`, nearest first (the
/// smaller one first on equal distance). Fewer when the range holds fewer. Walks outwards from the
/// centre, so the cost follows `count` and not the width of the range.
std::vector<u64> nearest_ntt_primes(u64 center, std::size_t count, u64 low, u64 high, u64 two_n);

}  // namespace crenel::math
