#include "ckks/params/scales.h"

#include <algorithm>
#include <cmath>

namespace crenel::ckks {
namespace {

// Product of list[from..to) if from < to, or the inverse of list[to..from).
long double ratio_of_prefixes(const std::vector<u64>& list, u32 from, u32 to) {
  long double product = 1;
  for (u32 i = std::min(from, to); i < std::max(from, to); ++i)
    product *= static_cast<long double>(list[i]);
  return from <= to ? product : 1 / product;
}

}  // namespace

long double log2_product(std::span<const u64> primes) {
  long double sum = 0;
  for (const u64 p : primes) sum += std::log2(static_cast<long double>(p));
  return sum;
}

std::vector<double> level_log_q(const Spec& spec) {
  std::vector<double> logs;
  for (const LevelModulus& level : spec.levels)
    logs.push_back(static_cast<double>(log2_product({spec.main.data(), level.main}) +
                                       log2_product({spec.terminal.data(), level.terminal})));
  return logs;
}

std::vector<long double> rescale_ratios(const Spec& spec) {
  std::vector<long double> ratios(spec.levels.empty() ? 0 : 1, 1);
  for (std::size_t l = 1; l < spec.levels.size(); ++l) {
    const LevelModulus &below = spec.levels[l - 1], &here = spec.levels[l];
    ratios.push_back(ratio_of_prefixes(spec.main, below.main, here.main) *
                     ratio_of_prefixes(spec.terminal, below.terminal, here.terminal));
  }
  return ratios;
}

std::vector<double> canonical_scales(const Spec& spec) {
  const std::vector<long double> ratios = rescale_ratios(spec);
  long double scale = std::ldexp(1.0L, static_cast<int>(spec.log_scale));
  std::vector<double> scales{static_cast<double>(scale)};
  for (u32 l = 1; l <= spec.normal_top_level; ++l) {
    scale = std::sqrt(scale * ratios[l]);
    scales.push_back(static_cast<double>(scale));
  }
  return scales;
}

double scale_deviation(const Spec& spec, u32* worst) {
  double deviation = 0;
  const std::vector<double> scales = canonical_scales(spec);
  for (u32 l = 0; l < scales.size(); ++l) {
    const double here = std::abs(std::log2(scales[l]) - spec.log_scale);
    if (here < deviation) continue;
    deviation = here;
    if (worst != nullptr) *worst = l;
  }
  return deviation;
}

}  // namespace crenel::ckks
