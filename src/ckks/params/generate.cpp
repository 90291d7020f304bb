// Params::generate: chain search plus the choice of the number of special primes.
#include <algorithm>

#include "ckks/params/prime_system.h"
#include "ckks/params/scales.h"
#include "ckks/params/validate.h"
#include "crenel/core/error.h"

namespace crenel::ckks {
namespace {

constexpr u32 kMaxDepth = 120;
constexpr u32 kAutoMaxAlpha = 12;
constexpr u64 kChainSeeds = 6;

void expect_arguments(u32 log_n, u32 scale_bits, u32 depth, u32 alpha) {
  if (log_n < 10 || log_n > 17)
    throw ParameterError(cat("log_n is ", log_n, ", expected 10..17"), {{"log_n", log_n}});
  if (!is_supported_scale(scale_bits))
    throw ParameterError(cat("scale_bits is ", scale_bits, ", expected one of 28 30 35 40 45 50"),
                         {{"scale_bits", scale_bits}});
  if (depth < 1 || depth > kMaxDepth)
    throw ParameterError(cat("depth is ", depth, ", expected 1..", kMaxDepth), {{"depth", depth}});
  if (alpha > kMaxAlpha)
    throw ParameterError(
        cat("alpha is ", alpha, ", expected 1..", kMaxAlpha, " or 0 for automatic"),
        {{"alpha", alpha}});
}

LevelModulus chain_size(u32 scale_bits, u32 depth) {
  LevelModulus used;
  for (const LevelModulus& level : rescaling_levels(scale_bits, depth)) {
    used.main = std::max(used.main, level.main);
    used.terminal = std::max(used.terminal, level.terminal);
  }
  return used;
}

// Few digits make key switching fast and keys small, but cost modulus for P: from three digits
// upwards, the first count that is secure wins.
std::vector<u32> alpha_candidates(u32 limbs, u32 alpha) {
  if (alpha != 0) return {alpha};
  std::vector<u32> list;
  for (u32 dnum = std::min(3u, limbs); dnum <= limbs; ++dnum) {
    const u32 candidate = (limbs + dnum - 1) / dnum;
    if (candidate <= kAutoMaxAlpha && (list.empty() || list.back() != candidate))
      list.push_back(candidate);
  }
  return list;
}

// Largest depth whose nominal chain fits `bound` with one special prime; 0 when none does.
u32 largest_secure_depth(u32 scale_bits, u32 below_depth, double bound) {
  const double base_excess = scale_bits == 28   ? -17.3
                             : scale_bits == 30 ? -20.3
                             : scale_bits == 45 ? -7
                             : scale_bits == 50 ? -2
                                                : 0;
  for (u32 depth = below_depth; depth-- > 1;) {
    const LevelModulus size = chain_size(scale_bits, depth);
    if (1.0 * main_bits(scale_bits) * size.main + 25.0 * size.terminal + base_excess + 31 <= bound)
      return depth;
  }
  return 0;
}

[[noreturn]] void refuse(const Spec& chain, u32 depth, u32 alpha, double bound) {
  const double log_pq = log2_pq(chain) + 31.0 * alpha;
  const u32 best = largest_secure_depth(chain.log_scale, depth, bound);
  throw ParameterError(
      cat("log_n = ", chain.log_n, " with scale 2^", chain.log_scale, ", depth ", depth, " and ",
          alpha, " special prime(s) needs log PQ = ", fixed(log_pq, 1),
          ", but the 128-bit bound is ", bound,
          best > 0 ? cat("; the largest depth here is about ", best) : std::string(),
          "; take a larger log_n or a smaller depth or scale"),
      {{"log_pq", log_pq},
       {"bound", bound},
       {"log_n", chain.log_n},
       {"scale_bits", chain.log_scale},
       {"depth", depth}});
}

struct Search {
  std::vector<u32> alphas;
  double bound;
  bool too_large = false;  // some alpha failed on security rather than on overflow

  // Fills in the special primes of the first acceptable alpha.
  bool complete(Spec& chain, u64 seed, bool secure) {
    const double log_q = log2_pq(chain);
    for (const u32 alpha : alphas) {
      if (secure && log_q + 31.0 * alpha > bound + alpha * 0.1) {
        too_large = true;
        continue;
      }
      const auto special = search_special_primes(chain, alpha, seed);
      if (!special) continue;
      chain.auxiliary = *special;
      if (!secure || log2_pq(chain) <= bound) return true;
      too_large = true;
      chain.auxiliary.clear();
    }
    return false;
  }
};

}  // namespace

Params Params::generate(u32 log_n, u32 scale_bits, u32 depth, bool allow_insecure, u32 alpha) {
  expect_arguments(log_n, scale_bits, depth, alpha);
  const LevelModulus size = chain_size(scale_bits, depth);
  const u32 limbs = size.main + size.terminal;
  if (limbs + std::max(alpha, 1u) > kMaxLimbs)
    throw ParameterError(
        cat("depth ", depth, " at scale 2^", scale_bits, " needs ", limbs,
            " primes and special primes, expected at most ", kMaxLimbs, " together"),
        {{"depth", depth}, {"limbs", limbs}});
  Search search{alpha_candidates(limbs, alpha), max_log_pq(log_n, 128, 0).value_or(0)};
  Spec chain;
  for (const bool secure : {true, false}) {
    if (!secure && !allow_insecure) break;
    for (u64 seed = 0; seed < kChainSeeds; ++seed) {
      chain = search_chain(log_n, scale_bits, depth, seed);
      if (search.complete(chain, seed, secure)) {
        chain.provenance = cat("crenel::ckks::Params::generate(", log_n, ", ", scale_bits, ", ",
                               depth, ", alpha ", chain.auxiliary.size(), "), chain seed ", seed);
        return from_spec(std::move(chain), allow_insecure);
      }
      if (secure && search.too_large) break;
    }
  }
  if (search.too_large) refuse(chain, depth, search.alphas.back(), search.bound);
  throw ParameterError(
      cat("no special primes below 2^31 keep base conversion below 2^64 for log_n = ", log_n,
          ", scale 2^", scale_bits, ", depth ", depth, ", alpha ", search.alphas.front(),
          "; take a smaller alpha"),
      {{"alpha", search.alphas.front()}, {"log_n", log_n}});
}

}  // namespace crenel::ckks
