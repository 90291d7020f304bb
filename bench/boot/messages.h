// Clear messages of every kind that the precision model knows, and statistics of their errors.
#pragma once

#include <cmath>
#include <complex>
#include <functional>
#include <random>
#include <vector>

#include "crenel/circuits/bootstrapping.h"

namespace crenel::bench {

using Values = std::vector<std::complex<double>>;

/// Uniform on [-1, 1]^2.
Values uniform(std::mt19937_64& rng, u64 count);

struct Kind {
  const char* name;
  circuits::Message message;
  std::function<Values(std::mt19937_64&, u64)> draw;
};
const std::vector<Kind>& kinds();

/// Errors of every slot of many bootstraps.
class Errors {
 public:
  /// The largest error of one output; infinite for NaN and for another number of slots.
  double add(const Values& found, const Values& expected);
  u64 runs() const { return runs_; }
  double worst() const { return worst_; }
  double mean_max() const { return sum_of_maxima_ / static_cast<double>(runs_); }
  double rms() const { return std::sqrt(squares_ / static_cast<double>(slots_)); }

 private:
  double worst_ = 0.0, sum_of_maxima_ = 0.0, squares_ = 0.0;
  u64 slots_ = 0, runs_ = 0;
};

}  // namespace crenel::bench
