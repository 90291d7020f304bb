// Timing with adaptive repeats.
#pragma once

#include <functional>
#include <vector>

namespace crenel::bench {

struct Budget {
  double group_seconds =
      0.02;  ///< calls queued between two synchronisations take at least this long
  double total_seconds = 3.0;
  double spread = 0.02;  ///< stop when (q3 - q1) / median is below it
  int min_groups = 7;
  int max_groups = 60;
};

/// Seconds a call; each sample is the mean of one group of `calls` calls.
struct Timing {
  double median = 0.0;
  double q1 = 0.0;
  double q3 = 0.0;
  double least = 0.0;
  int groups = 0;
  int calls = 0;
};

/// Warms up (memory pools, clocks), sizes the groups, then repeats them until the spread is small
/// or the budget is spent. `synchronize` waits for what `call` queued.
Timing measure(const std::function<void()>& call, const std::function<void()>& synchronize,
               const Budget& budget);

/// Quartiles of samples (seconds a call).
Timing summarise(std::vector<double> samples, int calls);

}  // namespace crenel::bench
