// Search of leveled chains in the 25-30 prime system (docs/theory/ckks-primes.md).
#pragma once

#include <optional>
#include <vector>

#include "crenel/ckks/params.h"

namespace crenel::ckks {

/// Whether the rescaling cycle is defined for this scale: 28, 30, 35, 40, 45 or 50 bits.
bool is_supported_scale(u32 scale_bits);

/// Main primes are near 2^ this: 30, or the scale below that.
u32 main_bits(u32 scale_bits);

/// Primes at the front of the main list that are not of that family but fix the size of Q_0.
u32 base_prime_count(u32 scale_bits);

/// (main, terminal) counts of levels 0..depth:
///   t(l+1) = (t(l) - D/5) mod 6,   m(l+1) = m(l) + (D - 25 (t(l+1) - t(l))) / 30,
/// and one main prime a level below 30 bits.
std::vector<LevelModulus> rescaling_levels(u32 scale_bits, u32 depth);

/// A chain with canonical scales close to 2^scale_bits, without special primes. Deterministic in
/// its arguments on every platform (integer arithmetic only). Throws ParameterError when there are
/// too few NTT primes.
Spec search_chain(u32 log_n, u32 scale_bits, u32 depth, u64 seed);

/// `alpha` special primes just below 2^31 for which all base conversions of `spec` fit 64-bit
/// accumulators, or nullopt when none were found.
std::optional<std::vector<u64>> search_special_primes(const Spec& spec, u32 alpha, u64 seed);

/// Small deterministic generator (splitmix64) of the searches; not for cryptography.
class SearchRng {
 public:
  explicit SearchRng(u64 seed) : state_(seed) {}
  u64 next() {
    u64 z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// Below `bound`; the bias of order bound / 2^64 does not matter here.
  std::size_t below(std::size_t bound) {
    return static_cast<std::size_t>(static_cast<u128>(next()) * bound >> 64);
  }

 private:
  u64 state_;
};

}  // namespace crenel::ckks
