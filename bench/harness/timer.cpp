#include "harness/timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace crenel::bench {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Linear interpolation between the neighbours.
double quantile(const std::vector<double>& sorted, double p) {
  const double at = p * static_cast<double>(sorted.size() - 1);
  const std::size_t low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (at - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

}  // namespace

Timing summarise(std::vector<double> samples, int calls) {
  std::sort(samples.begin(), samples.end());
  return {quantile(samples, 0.5), quantile(samples, 0.25),          quantile(samples, 0.75),
          samples.front(),        static_cast<int>(samples.size()), calls};
}

Timing measure(const std::function<void()>& call, const std::function<void()>& synchronize,
               const Budget& budget) {
  const auto group = [&](int calls) {
    const double begin = now();
    for (int i = 0; i < calls; ++i) call();
    synchronize();
    return (now() - begin) / calls;
  };
  // The estimate doubles as warm-up: grow until a group is long enough to be measured.
  synchronize();
  group(1);
  int calls = 1;
  for (double each = group(1); each * calls < budget.group_seconds && calls < 4096;
       each = group(calls))
    calls =
        std::max(calls + 1, std::min(4 * calls, static_cast<int>(std::ceil(budget.group_seconds /
                                                                           std::max(each, 1e-9)))));
  std::vector<double> samples;
  const double begin = now();
  while (static_cast<int>(samples.size()) < budget.max_groups) {
    samples.push_back(group(calls));
    if (static_cast<int>(samples.size()) < budget.min_groups) {
      // Very long calls: three groups are all there is time for.
      if (samples.size() >= 3 && now() - begin > 4 * budget.total_seconds) break;
      continue;
    }
    const Timing t = summarise(samples, calls);
    if ((t.q3 - t.q1) / t.median < budget.spread || now() - begin > budget.total_seconds) break;
  }
  return summarise(samples, calls);
}

}  // namespace crenel::bench
