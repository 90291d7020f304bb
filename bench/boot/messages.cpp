#include "boot/messages.h"

#include <algorithm>
#include <cmath>

namespace crenel::bench {
namespace {

Values real(std::mt19937_64& rng, u64 count, double from, double to) {
  std::uniform_real_distribution<double> u(from, to);
  Values v(count);
  for (auto& x : v) x = u(rng);
  return v;
}

Values one_hot(std::mt19937_64& rng, u64 count) {
  Values v(count);
  v[rng() % count] = 1.0;
  return v;
}

Values periodic(std::mt19937_64& rng, u64 count) {
  const Values few = real(rng, 16, -1.0, 1.0);
  Values v(count);
  for (u64 i = 0; i < count; ++i) v[i] = few[i % 16];
  return v;
}

Values at_the_bound(std::mt19937_64& rng, u64 count) {
  Values v(count);
  for (auto& x : v) x = rng() & 1 ? 1.0 : -1.0;
  return v;
}

}  // namespace

Values uniform(std::mt19937_64& rng, u64 count) {
  std::uniform_real_distribution<double> u(-1.0, 1.0);
  Values v(count);
  for (auto& x : v) x = {u(rng), u(rng)};
  return v;
}

const std::vector<Kind>& kinds() {
  using K = circuits::MessageKind;
  static const std::vector<Kind> all{
      {"uniform_complex", {K::uniform_complex}, uniform},
      {"uniform_real", {K::uniform_real}, [](auto& r, u64 n) { return real(r, n, -1.0, 1.0); }},
      {"uniform_unit", {K::uniform_unit}, [](auto& r, u64 n) { return real(r, n, 0.0, 1.0); }},
      {"constant", {K::constant}, [](auto&, u64 n) { return Values(n, 1.0); }},
      {"one_hot", {K::one_hot}, one_hot},
      {"period_16", {K::periodic}, periodic},
      {"at_the_bound", {K::bound}, at_the_bound}};
  return all;
}

double Errors::add(const Values& found, const Values& expected) {
  double largest = found.size() == expected.size() ? 0.0 : HUGE_VAL;
  for (std::size_t i = 0; i < found.size() && i < expected.size(); ++i) {
    const double e = std::abs(found[i] - expected[i]);
    if (!(e <= largest)) largest = std::isnan(e) ? HUGE_VAL : e;
    squares_ += e * e;
  }
  slots_ += found.size(), ++runs_;
  worst_ = std::max(worst_, largest), sum_of_maxima_ += largest;
  return largest;
}

}  // namespace crenel::bench
