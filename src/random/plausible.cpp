#include "random/plausible.h"

#include <cmath>
#include <numbers>

namespace crenel::random {

bool plausible_count(u64 count, u64 trials, double probability) {
  if (trials == 0 || count > trials) return count == 0;
  const double n = static_cast<double>(trials), x = static_cast<double>(count) / n;
  const auto term = [](double found, double expected) {
    return found > 0.0 ? found * std::log(found / expected) : 0.0;
  };
  const double entropy = term(x, probability) + term(1.0 - x, 1.0 - probability);
  return n * entropy <= 64.0 * std::numbers::ln2;
}

}  // namespace crenel::random
