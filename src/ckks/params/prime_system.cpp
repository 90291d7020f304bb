#include "ckks/params/prime_system.h"

#include <algorithm>
#include <cmath>

#include "ckks/params/base_conversion.h"
#include "ckks/params/chain_annealer.h"
#include "crenel/core/error.h"
#include "crenel/core/watch.h"
#include "math/primes.h"

namespace crenel::ckks {
namespace {

constexpr u32 kIterations = 100000;
constexpr u32 kSpecialTries = 20000;
constexpr std::size_t kSpecialPool = 64;
constexpr std::size_t kTerminalPool = 8;

u64 pow2(double bits) { return static_cast<u64>(std::exp2(bits)); }

struct Family {
  double center, low, high;  // log2
};
// Main primes stay clear of the special primes, so that P exceeds every digit by at least half a
// bit a limb; terminal primes must stay small because deviations are paid for by main primes.
Family main_family(u32 scale_bits) {
  const double center = main_bits(scale_bits);
  return {center, center - 0.4, center + 0.4};
}
constexpr Family kTerminal{25, 24.4, 25.6};
constexpr double kSpecialLow = 30.9;

std::vector<u64> pool(const Family& family, std::size_t count, u64 two_n) {
  return math::nearest_ntt_primes(pow2(family.center), count, pow2(family.low), pow2(family.high),
                                  two_n);
}

[[noreturn]] void too_few(u32 log_n, const char* family, double bits, std::size_t found,
                          std::size_t needed) {
  throw ParameterError(
      cat("ring degree 2^", log_n, " has only ", found, " ", family, " primes = 1 mod 2N near 2^",
          bits, ", the chain needs ", needed, "; take a smaller depth"),
      {{"log_n", log_n}, {"found", found}, {"needed", needed}});
}

// The primes that only fix the size of Q_0 (together with one ~2^30 prime for 45 bits).
std::vector<u64> base_primes(u32 log_n, u32 scale_bits) {
  const u64 two_n = u64{2} << log_n;
  std::vector<u64> base;
  if (scale_bits <= 30) {
    // 3 2^18 + 1 is NTT friendly for every N <= 2^17; its partner brings Q_0 to 9.7 bits above the
    // scale or just above.
    constexpr u64 kFirst = 786433;
    const u64 low = std::max(pow2(scale_bits + 9.7) / kFirst + 1, kPrimeMin);
    std::vector<u64> others = math::ntt_primes(low, pow2(24), two_n);
    std::erase(others, kFirst);
    base = {kFirst, others.front()};
  } else if (scale_bits == 45) {
    base = math::nearest_ntt_primes(pow2(23.022), 1, pow2(22), pow2(24), two_n);
  } else if (scale_bits == 50) {
    base = math::nearest_ntt_primes(pow2(29), 2, pow2(28.7), pow2(29.3), two_n);
  }
  if (base.size() != base_prime_count(scale_bits))
    too_few(log_n, "base", scale_bits == 50 ? 29 : 23, base.size(), base_prime_count(scale_bits));
  return base;
}

bool chain_conversions_fit(const std::vector<u64>& chain, const std::vector<DigitGroup>& groups) {
  for (const DigitGroup& g : groups)
    for (u32 i = g.window_begin; i < g.window_end; ++i)
      if ((i < g.begin || i >= g.end) &&
          !conversion_fits({chain.data() + g.begin, g.end - g.begin}, chain[i]))
        return false;
  return true;
}

}  // namespace

bool is_supported_scale(u32 scale_bits) {
  return scale_bits == 28 || (scale_bits >= 30 && scale_bits <= 50 && scale_bits % 5 == 0);
}

u32 main_bits(u32 scale_bits) { return std::min(scale_bits, 30u); }

u32 base_prime_count(u32 scale_bits) {
  switch (scale_bits) {
    case 28:
    case 30:
    case 50:
      return 2;
    case 45:
      return 1;
    default:
      return 0;
  }
}

std::vector<LevelModulus> rescaling_levels(u32 scale_bits, u32 depth) {
  // Level 0: (2,0) for up to 30 and 50 bits, (1+1,0) for 45, two terminal primes for 35 and 40.
  const bool terminal_base = scale_bits == 35 || scale_bits == 40;
  std::vector<LevelModulus> levels{terminal_base ? LevelModulus{0, 2} : LevelModulus{2, 0}};
  for (u32 l = 0; l < depth; ++l) {
    if (scale_bits < 30) {
      levels.push_back({levels[l].main + 1, 0});
      continue;
    }
    const int t = static_cast<int>(levels[l].terminal);
    const int next_t = ((t - static_cast<int>(scale_bits / 5)) % 6 + 6) % 6;
    const int added = (static_cast<int>(scale_bits) - 25 * (next_t - t)) / 30;
    levels.push_back(
        {static_cast<u32>(static_cast<int>(levels[l].main) + added), static_cast<u32>(next_t)});
  }
  return levels;
}

Spec search_chain(u32 log_n, u32 scale_bits, u32 depth, u64 seed) {
  ChainAnnealer::Problem problem{.base_count = base_prime_count(scale_bits),
                                 .main_bits = main_bits(scale_bits),
                                 .levels = rescaling_levels(scale_bits, depth),
                                 .base = base_primes(log_n, scale_bits),
                                 .main_pool = {},
                                 .terminal_pool = {}};
  u32 mains = 0, terminals = 0;
  for (const LevelModulus& level : problem.levels) {
    mains = std::max(mains, level.main - problem.base_count);
    terminals = std::max(terminals, level.terminal);
  }
  const u64 two_n = u64{2} << log_n;
  const Family main = main_family(scale_bits);
  problem.main_pool = pool(main, 3 * mains + 64, two_n);
  if (problem.main_pool.size() < mains)
    too_few(log_n, "main", main.center, problem.main_pool.size(), mains);
  if (terminals > 0) problem.terminal_pool = pool(kTerminal, kTerminalPool, two_n);
  if (problem.terminal_pool.size() < terminals)
    too_few(log_n, "terminal", kTerminal.center, problem.terminal_pool.size(), terminals);

  Spec spec;
  spec.log_n = log_n;
  spec.log_scale = scale_bits;
  spec.levels = problem.levels;
  spec.normal_top_level = depth;
  ChainAnnealer annealer(std::move(problem));
  annealer.run(seed, kIterations);
  spec.main = annealer.main();
  spec.terminal = annealer.terminal();
  return spec;
}

std::optional<std::vector<u64>> search_special_primes(const Spec& spec, u32 alpha, u64 seed) {
  const std::vector<u64> chain = chain_in_position_order(spec);
  const std::vector<DigitGroup> groups = digit_groups(spec, alpha);
  if (!chain_conversions_fit(chain, groups)) return std::nullopt;

  // ModUp into P asks something of each special prime by itself ...
  std::vector<u64> candidates = math::nearest_ntt_primes(
      kPrimeMax - 1, kSpecialPool, pow2(kSpecialLow), kPrimeMax, u64{2} << spec.log_n);
  std::erase_if(candidates, [&](u64 p) {
    return !std::all_of(groups.begin(), groups.end(), [&](const DigitGroup& g) {
      return conversion_fits({chain.data() + g.begin, g.end - g.begin}, p);
    });
  });
  if (candidates.size() < alpha) return std::nullopt;
  // ... ModDown something of their combination: the largest first, then random ones.
  SearchRng rng(seed);
  std::vector<u64> special(candidates.begin(), candidates.begin() + alpha);
  for (u32 attempt = 0; attempt < kSpecialTries; ++attempt) {
    watch::point();
    const auto fits = [&](u64 q) { return conversion_fits(special, q); };
    if (std::all_of(chain.begin(), chain.end(), fits)) {
      std::sort(special.rbegin(), special.rend());
      return special;
    }
    for (u32 i = 0; i < alpha; ++i)
      std::swap(candidates[i], candidates[i + rng.below(candidates.size() - i)]);
    special.assign(candidates.begin(), candidates.begin() + alpha);
  }
  return std::nullopt;
}

}  // namespace crenel::ckks
