// Whether imported secrets can be what the samplers draw.
#pragma once

#include <span>

#include "crenel/core/types.h"

namespace crenel::random {

/// What the coefficients of a secret are.
struct TernaryCounts {
  u64 ones = 0, minus_ones = 0;
  bool other = false;  ///< some are neither -1 nor 0 nor 1: the counts mean nothing then
};

/// Counted without branching on coefficients: the time tells their number only.
inline TernaryCounts count_ternary(std::span<const i8> coefficients) {
  u64 invalid = 0, odd = 0, negative = 0;
  for (const i8 c : coefficients) {
    invalid |= static_cast<u64>(static_cast<u8>(c + 1) > 2);
    negative += static_cast<u64>(static_cast<u8>(c)) >> 7;
    odd += static_cast<u64>(c) & 1u;
  }
  return {odd - negative, negative, invalid != 0};
}

/// Whether `count` successes in `trials` independent trials of this probability, in (0, 1), are
/// credible: false where a count as far from the mean on its side has a probability below 2^-64,
/// by the bound exp(-n D(count / n || p)) of Chernoff and Hoeffding, D the relative entropy. Fewer
/// than 64 trials or so exclude little.
bool plausible_count(u64 count, u64 trials, double probability);

}  // namespace crenel::random
