#include "ckks/params/chain.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "ckks/params/base_conversion.h"

namespace crenel::ckks {
namespace {

using rlwe::LimbSet;

// The sums of ModUp at this level stay below 2^64. `seen`: sources that are known to do.
bool conversions_fit(const rlwe::Chain& chain, u32 level, const LimbSet& widest,
                     std::set<std::pair<u32, u32>>& seen) {
  const LimbSet window = chain.limbs(level);
  for (u32 i = 0; i < window.size();) {
    const u32 first = i, block = chain.digit_of(window[i], level);
    LimbSet digit;
    std::vector<u64> sources;
    do {
      digit.push_back(window[i]);
      sources.push_back(chain.primes[window[i]]);
      ++i;
    } while (i < window.size() && chain.digit_of(window[i], level) == block);
    if (!seen.emplace(window[first], digit.back()).second) continue;
    const u32 all = static_cast<u32>(chain.primes.size());
    const LimbSet targets = widest.concat(LimbSet::range(chain.chain_limbs, all)).minus(digit);
    for (u32 t = 0; t < targets.size(); ++t)
      if (!conversion_fits(sources, chain.primes[targets[t]])) return false;
  }
  return true;
}

// The largest digit of keys for `level`, in bits.
double largest_digit(const rlwe::Chain& chain, u32 level) {
  std::vector<double> bits(chain.dnum(level), 0.0);
  for (u32 at = chain.lead(level) == 0 ? 0 : chain.aligned_begin(); at < chain.chain_limbs; ++at)
    bits[chain.digit_of(at, level)] += std::log2(static_cast<double>(chain.primes[at]));
  return *std::max_element(bits.begin(), bits.end());
}

// Whether digits that begin where the windows of aligned levels do are no larger than the others,
// whose noise is known, and convert without overflow.
bool aligned_digits_fit(const rlwe::Chain& chain) {
  if (chain.alpha == 0 || chain.lead(rlwe::aligned_level(0)) == 0) return false;
  const u32 any = rlwe::aligned_level(0);
  if (largest_digit(chain, any) > largest_digit(chain, 0) + 0.01) return false;
  const LimbSet widest = LimbSet::range(chain.aligned_begin(), chain.chain_limbs);
  std::set<std::pair<u32, u32>> seen;
  for (u32 l = 0; l <= chain.top_level(); ++l) {
    const u32 level = rlwe::aligned_level(l);
    if (chain.has_level(level) && !conversions_fit(chain, level, widest, seen)) return false;
  }
  return true;
}

}  // namespace

rlwe::Chain chain_of(const Params& params) {
  rlwe::Chain chain;
  chain.log_n = params.log_n();
  chain.primes = params.primes();
  chain.chain_limbs = params.chain_limbs();
  chain.alpha = params.alpha();
  for (u32 level = 0; level <= params.max_level(); ++level)
    chain.windows.push_back({params.window_begin(level), params.window_end(level)});
  chain.normal_top = params.normal_top_level();
  chain.has_aligned = aligned_digits_fit(chain);
  return chain;
}

bool Params::is_short_base(u32 level) const {
  const u32 bottom = normal_top_level(), top = max_level();
  if (level >= bottom || bottom == top || alpha() == 0) return false;
  const rlwe::Chain chain = chain_of(*this);
  std::set<std::pair<u32, u32>> seen;
  for (u32 l = top + 1; l-- > bottom;) {
    const u32 here = rlwe::short_level(level, l);
    if (!chain.has_level(here) ||
        !conversions_fit(chain, here, chain.limbs(rlwe::short_level(level, top)), seen))
      return false;
  }
  return true;
}

}  // namespace crenel::ckks
