// Prime lists for tests: the 40-bit-scale system of the Cheddar family (47 + 12 primes, each 1
// modulo 2^17, so they serve every log N <= 16), and searches for what it does not cover. Toy
// rings: small N with these moduli is NOT secure.
#pragma once

#include <vector>

#include "math/primes.h"

namespace crenel::test {

/// Near 2^30 (normal levels, CoeffToSlot) and 2^29 (EvalMod).
inline constexpr u32 kMainPrimes[] = {
    1095761921, 1040842753, 1070727169, 1091043329, 1093795841, 1030619137, 1083703297, 1085276161,
    1093926913, 1049100289, 1062469633, 1092616193, 1091174401, 1048707073, 1062862849, 1087635457,
    1099431937, 1023148033, 1086455809, 1088684033, 1053818881, 1122500609, 1031667713, 547749889,
    526123009,  533463041,  540540929,  582746113,  494534657,  518914049,  555220993,  590479361,
    488243201,  521011201,  553254913,  591265793,  487456769,  537133057,  536608769,  1073872897,
    1073479681, 1074266113, 1071513601};
/// Near 2^25, tau_0 first.
inline constexpr u32 kTerminalPrimes[] = {31326209, 35389441, 30539777, 36175873};
/// Near 2^31, special primes.
inline constexpr u32 kSpecialPrimes[] = {2147352577, 2146959361, 2146041857, 2144468993,
                                         2142502913, 2135818241, 2135162881, 2135031809,
                                         2134638593, 2132279297, 2130706433, 2130444289};
/// 3 2^18 + 1, the smallest prime that serves log N = 17.
inline constexpr u32 kTinyPrime = 786433;

/// A chain in position order (terminal primes in descending index, main, special) with its split.
struct Chain {
  std::vector<u64> primes;
  u32 q_count = 0;
  u32 special_count = 0;
  u32 alpha = 1;  ///< limbs of a key-switching digit

  u32 digits() const { return (q_count + alpha - 1) / alpha; }
};

/// The first primes of the lists above; at most 4, 43 and 12.
inline Chain toy_chain(u32 terminal, u32 main, u32 special) {
  Chain c;
  for (u32 i = terminal; i-- > 0;) c.primes.push_back(kTerminalPrimes[i]);
  c.primes.insert(c.primes.end(), kMainPrimes, kMainPrimes + main);
  c.primes.insert(c.primes.end(), kSpecialPrimes, kSpecialPrimes + special);
  c.q_count = terminal + main;
  c.special_count = c.alpha = special;
  return c;
}

/// `count` primes that serve log_n, cycling through neighbourhoods of 2^31, 2^30, 2^25 and, where
/// they exist, 2^20: every width that the library meets, in one limb set.
inline std::vector<u64> mixed_primes(u32 log_n, u32 count) {
  const u64 two_n = u64(2) << log_n;
  const u64 top = (u64(1) << 31) - 1;
  const u32 each = (count + 3) / 4 + 1;
  const std::vector<u64> pools[] = {
      math::nearest_ntt_primes(top, each, u64(1) << 30, top, two_n),
      math::nearest_ntt_primes(u64(1) << 30, each, u64(1) << 29, u64(3) << 29, two_n),
      math::nearest_ntt_primes(u64(1) << 25, each, u64(1) << 24, u64(3) << 24, two_n),
      math::nearest_ntt_primes(u64(1) << 20, each, u64(1) << 19, u64(3) << 19, two_n)};
  std::vector<u64> primes;
  for (u32 i = 0; primes.size() < count; ++i) {
    const auto& pool = pools[i % 4];
    if (i / 4 < pool.size()) primes.push_back(pool[i / 4]);
    if (i > 8 * count + 64) break;
  }
  return primes;
}

/// The `count` largest primes below 2^31 that serve log_n: the worst case for accumulators.
inline std::vector<u64> largest_primes(u32 log_n, u32 count) {
  const u64 top = (u64(1) << 31) - 1;
  return math::nearest_ntt_primes(top, count, u64(1) << 28, top, u64(2) << log_n);
}

}  // namespace crenel::test
