#include "ckks/params/scales.h"

#include <algorithm>
#include <cmath>

namespace crenel::ckks {
namespace {

// A number as the sum of two doubles, about 2^-104 exact: long double is another format on every
// processor, and scales are part of ciphertexts.
struct Twice {
  double high = 0.0, low = 0.0;
};

Twice normal(double high, double low) {
  const double sum = high + low;
  return {sum, low - (sum - high)};
}

Twice twice(u64 integer) {
  const auto high = static_cast<double>(integer >> 32 << 32);
  return normal(high, static_cast<double>(integer & 0xffffffffu));
}

Twice product(Twice a, Twice b) {
  const double high = a.high * b.high;
  return normal(high, std::fma(a.high, b.high, -high) + (a.high * b.low + a.low * b.high));
}

// One step of Newton's iteration each, from the nearest double.
Twice inverse(Twice a) {
  const double guess = 1.0 / a.high;
  const double left = std::fma(-guess, a.high, 1.0) - guess * a.low;  // 1 - guess a
  return normal(guess, guess * left);
}

Twice root(Twice a) {
  const double guess = std::sqrt(a.high);
  const double left = std::fma(-guess, guess, a.high) + a.low;  // a - guess^2
  return normal(guess, left / (2.0 * guess));
}

// Product of list[from..to) if from < to, or the inverse of list[to..from).
Twice ratio_of_prefixes(const std::vector<u64>& list, u32 from, u32 to) {
  Twice found{1.0, 0.0};
  for (u32 i = std::min(from, to); i < std::max(from, to); ++i)
    found = product(found, twice(list[i]));
  return from <= to ? found : inverse(found);
}

// Of level >= 1.
Twice rescale_ratio(const Spec& spec, std::size_t level) {
  const LevelModulus &below = spec.levels[level - 1], &here = spec.levels[level];
  return product(ratio_of_prefixes(spec.main, below.main, here.main),
                 ratio_of_prefixes(spec.terminal, below.terminal, here.terminal));
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

std::vector<double> rescale_ratios(const Spec& spec) {
  std::vector<double> ratios(spec.levels.empty() ? 0 : 1, 1.0);
  for (std::size_t l = 1; l < spec.levels.size(); ++l)
    ratios.push_back(rescale_ratio(spec, l).high);
  return ratios;
}

std::vector<double> canonical_scales(const Spec& spec) {
  Twice scale{std::ldexp(1.0, static_cast<int>(spec.log_scale)), 0.0};
  std::vector<double> scales{scale.high};
  for (u32 l = 1; l <= spec.normal_top_level; ++l) {
    scale = root(product(scale, rescale_ratio(spec, l)));
    scales.push_back(scale.high);
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
