// Constants of the estimated quotient of folded conversions (device/folded.cuh). Plain data, no
// CUDA.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

#include "crenel/core/types.h"

namespace crenel::backend::cuda {

/// Of one prime.
struct FoldedConstants {
  float scale, shift;
  u32 excess;  ///< added to what sums begin with
};

/// None for primes that are too small (all from 2^24.5 on have some), or for which no excess fits.
///
/// With S a sum of 16 sources at most, below 64 * 255 q + q, S' = S + excess and
/// m = floor(S' / 2^24) < 2^22, the estimate is the float (2^23 + m) scale + shift rounded to
/// 2^23 + n - 1 + k, k within a unit of S / q. Its word is 0x4b000000 + n - 1 + k, so with
/// excess = (0x4b000000 + n) q mod 2^32 the lower word of S' minus q times that word is
/// S - k q + q. `shift` lies below 2^23, so it is exact to a half. Which excess is taken decides
/// how close to a half the wanted shift comes.
inline std::optional<FoldedConstants> folded_constants(u32 q) {
  constexpr double kOne = 8388608, kUnit = 16777216;  // 2^23, 2^24
  constexpr u32 kWord = 0x4b000000, kMostExcess = u32(1) << 30, kMostAdded = 32768;
  if (q < (u32(1) << 24) || q >= (u32(1) << 31)) return std::nullopt;
  for (u32 n = 2; n < kMostAdded; ++n) {
    const u32 excess = (kWord + n) * q;
    if (excess >= kMostExcess) continue;
    const float scale = static_cast<float>(kUnit / q);
    const double half = kUnit / q / 2;  // of what m leaves out
    const double wanted = kOne + (n - 1) - kOne * double(scale) - double(excess) / q + half;
    const double shift = std::round(2 * wanted) / 2, constant = shift - wanted;
    // What the estimate may be above and below S / q, beside its rounding.
    const double most = (64.0 * 255 * q + q + excess) / kUnit;
    const double slope = (double(scale) - kUnit / q) * most;
    const double above = constant + std::max(slope, 0.0) + half;
    const double below = -constant + std::max(-slope, 0.0) + half;
    if (std::max(above, below) >= 0.45 || shift >= kOne || shift <= 0) continue;
    return FoldedConstants{scale, static_cast<float>(shift), excess};
  }
  return std::nullopt;
}

}  // namespace crenel::backend::cuda
