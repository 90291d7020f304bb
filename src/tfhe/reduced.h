// Whether words are reduced, by stretches with a point of core/watch.h before each. The largest
// word of a stretch comes first: that vectorises, and most keys are good.
#pragma once

#include <algorithm>
#include <span>

#include "crenel/core/types.h"
#include "crenel/core/watch.h"

namespace crenel::tfhe {

/// Index of the first word of residues, [..., primes, N], that is not below its prime; their number
/// where all are.
inline u64 first_unreduced(std::span<const u32> words, std::span<const u64> primes, u32 log_n) {
  const u64 n = u64(1) << log_n;
  for (u64 begin = 0; begin < words.size(); begin += n) {
    watch::point();
    const std::span<const u32> poly = words.subspan(begin, std::min<u64>(n, words.size() - begin));
    const u64 prime = primes[(begin >> log_n) % primes.size()];
    u32 largest = 0;
    for (const u32 word : poly) largest = std::max(largest, word);
    if (largest < prime) continue;
    const auto large = std::find_if(poly.begin(), poly.end(), [&](u32 w) { return w >= prime; });
    return begin + static_cast<u64>(large - poly.begin());
  }
  return words.size();
}

/// Index of the first word that is not below 2^log_modulus, log_modulus below 64; their number
/// where all are.
inline u64 first_unreduced(std::span<const u64> words, u32 log_modulus) {
  constexpr u64 kStretch = u64(1) << 16;
  for (u64 begin = 0; begin < words.size(); begin += kStretch) {
    watch::point();
    const std::span<const u64> part =
        words.subspan(begin, std::min(kStretch, words.size() - begin));
    u64 all = 0;
    for (const u64 word : part) all |= word;
    if (all >> log_modulus == 0) continue;
    const auto large =
        std::find_if(part.begin(), part.end(), [&](u64 w) { return w >> log_modulus != 0; });
    return begin + static_cast<u64>(large - part.begin());
  }
  return words.size();
}

}  // namespace crenel::tfhe
