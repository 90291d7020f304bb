#include "ckks/params/chain.h"

#include <set>

#include "ckks/params/base_conversion.h"

namespace crenel::ckks {
namespace {

using rlwe::LimbSet;

// The sums of ModUp at this short level stay below 2^64. `seen`: sources that are known to do.
bool conversions_fit(const rlwe::Chain& chain, const LimbSet& window, const LimbSet& widest,
                     std::set<std::pair<u32, u32>>& seen) {
  for (u32 i = 0; i < window.size();) {
    const u32 first = i, block = window[i] / chain.alpha;
    LimbSet digit;
    std::vector<u64> sources;
    for (; i < window.size() && window[i] / chain.alpha == block; ++i) {
      digit.push_back(window[i]);
      sources.push_back(chain.primes[window[i]]);
    }
    if (!seen.emplace(window[first], window[i - 1]).second) continue;
    const u32 all = static_cast<u32>(chain.primes.size());
    const LimbSet targets = widest.concat(LimbSet::range(chain.chain_limbs, all)).minus(digit);
    for (u32 t = 0; t < targets.size(); ++t)
      if (!conversion_fits(sources, chain.primes[targets[t]])) return false;
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
        !conversions_fit(chain, chain.limbs(here), chain.limbs(rlwe::short_level(level, top)),
                         seen))
      return false;
  }
  return true;
}

}  // namespace crenel::ckks
