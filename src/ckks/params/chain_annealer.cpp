#include "ckks/params/chain_annealer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "crenel/core/watch.h"

namespace crenel::ckks {
namespace {

constexpr i64 kOneBit = i64{1} << 40;
// Trying every order of every choice is cheap up to here: 8!/3! = 6720.
constexpr std::size_t kMaxTerminalPool = 8;

// Best order of terminal primes: the products of the first t primes, over the counts t that occur,
// shall all deviate alike from 2^(25 t), because the main primes must make up for the difference.
struct TerminalSearch {
  const std::vector<i64>& dev;
  const std::vector<bool>& count_occurs;  // by t
  std::vector<u32> order;                 // of the pool; the first `depth` entries are chosen
  std::vector<u32> best;
  i64 best_spread = std::numeric_limits<i64>::max();

  void visit(std::size_t depth, i64 sum, i64 low, i64 high) {
    if (count_occurs[depth]) low = std::min(low, sum), high = std::max(high, sum);
    if (high > low && high - low >= best_spread) return;
    if (depth + 1 == count_occurs.size()) {
      best_spread = high - low;
      best = order;
      return;
    }
    for (std::size_t i = depth; i < order.size(); ++i) {
      std::swap(order[depth], order[i]);
      visit(depth + 1, sum + dev[order[depth]], low, high);
      std::swap(order[depth], order[i]);
    }
  }
};

std::vector<i64> deviations(const std::vector<u64>& primes, i64 nominal_bits) {
  std::vector<i64> dev;
  for (const u64 p : primes) dev.push_back(log2_fixed(p) - nominal_bits * kOneBit);
  return dev;
}

}  // namespace

i64 log2_fixed(u64 p) {
  return std::llround(std::log2(static_cast<long double>(p)) * static_cast<long double>(kOneBit));
}

ChainAnnealer::ChainAnnealer(Problem problem) : problem_(std::move(problem)) {
  for (const LevelModulus& level : problem_.levels) {
    main_count_ = std::max(main_count_, level.main);
    terminal_count_ = std::max(terminal_count_, level.terminal);
  }
  if (terminal_count_ > 0 && problem_.terminal_pool.size() > kMaxTerminalPool)
    problem_.terminal_pool.resize(kMaxTerminalPool);
  main_dev_ = deviations(problem_.main_pool, problem_.main_bits);
  terminal_dev_ = deviations(problem_.terminal_pool, 25);
  main_.resize(main_dev_.size());
  terminal_.resize(terminal_dev_.size());
  std::iota(main_.begin(), main_.end(), 0u);
  std::iota(terminal_.begin(), terminal_.end(), 0u);
  main_sum_.assign(main_count_ + 1, 0);
  terminal_sum_.assign(terminal_count_ + 1, 0);
}

void ChainAnnealer::order_terminals() {
  if (terminal_count_ == 0) return;
  std::vector<bool> occurs(terminal_count_ + 1, false);
  for (const LevelModulus& level : problem_.levels) occurs[level.terminal] = true;
  constexpr i64 kFar = std::numeric_limits<i64>::max() / 4;
  TerminalSearch search{terminal_dev_, occurs, terminal_, {}};
  search.visit(0, 0, kFar, -kFar);
  terminal_ = search.best;
  for (u32 t = 0; t < terminal_count_; ++t)
    terminal_sum_[t + 1] = terminal_sum_[t] + terminal_dev_[terminal_[t]];
}

// Greedy: walk along the main primes and steer their running product to the value that makes Q_l
// exact wherever a level ends there.
void ChainAnnealer::choose_main() {
  const u32 base = problem_.base_count;
  std::vector<std::optional<i64>> target(main_count_ + 1);
  std::vector<i64> sum(main_count_ + 1, 0), hits(main_count_ + 1, 0);
  for (const LevelModulus& level : problem_.levels) {
    sum[level.main] -= terminal_sum_[level.terminal];
    ++hits[level.main];
  }
  // Levels made of base and terminal primes only cannot be steered: they set the reference.
  const i64 reference = hits[base] > 0 ? -sum[base] / hits[base] : 0;
  for (u32 m = base + 1; m <= main_count_; ++m)
    if (hits[m] > 0) target[m] = reference + sum[m] / hits[m];

  i64 current = 0;
  for (u32 i = 0; base + i < main_count_; ++i) {
    u32 next = base + i + 1;
    while (next < main_count_ && !target[next]) ++next;
    const i64 steps = next - (base + i);
    const i64 wanted = (target[next].value_or(0) - current) / steps;
    const auto closer = [&](u32 x, u32 y) {
      return std::abs(main_dev_[x] - wanted) < std::abs(main_dev_[y] - wanted);
    };
    std::iter_swap(main_.begin() + i, std::min_element(main_.begin() + i, main_.end(), closer));
    current += main_dev_[main_[i]];
  }
}

i64 ChainAnnealer::cost() {
  const u32 base = problem_.base_count;
  for (u32 m = base; m < main_count_; ++m)
    main_sum_[m + 1] = main_sum_[m] + main_dev_[main_[m - base]];
  for (u32 t = 0; t < terminal_count_; ++t)
    terminal_sum_[t + 1] = terminal_sum_[t] + terminal_dev_[terminal_[t]];
  // With E_l the deviation of log Q_l, log s_l deviates by e_l = (e_{l-1} + E_l - E_{l-1}) / 2.
  i64 scale = 0, worst = 0, total = 0, before = 0;
  for (std::size_t l = 0; l < problem_.levels.size(); ++l) {
    const LevelModulus& level = problem_.levels[l];
    const i64 here = main_sum_[level.main] + terminal_sum_[level.terminal];
    if (l > 0) scale = (scale + here - before) / 2;
    before = here;
    worst = std::max(worst, std::abs(scale));
    total += std::abs(scale);
  }
  return worst + total / (4 * static_cast<i64>(problem_.levels.size()));
}

void ChainAnnealer::run(u64 seed, u32 iterations) {
  order_terminals();
  choose_main();
  const std::size_t used_main = main_count_ - problem_.base_count;
  if (used_main == 0) return;
  SearchRng rng(seed);
  i64 current = cost(), best = current;
  std::vector<u32> best_main = main_, best_terminal = terminal_;
  const i64 start_threshold = current / 4;
  for (u32 i = 0; i < iterations; ++i) {
    watch::point();
    // Threshold accepting (Dueck and Scheuer 1990): annealing without a transcendental function.
    const i64 left = iterations - i;
    const i64 threshold = start_threshold * left / iterations * left / iterations;
    const bool swap_terminals = terminal_count_ > 0 && rng.below(16) == 0;
    std::vector<u32>& list = swap_terminals ? terminal_ : main_;
    const std::size_t a = rng.below(swap_terminals ? terminal_count_ : used_main);
    const std::size_t b = rng.below(list.size());
    std::swap(list[a], list[b]);
    const i64 proposed = cost();
    if (proposed > current + threshold) {
      std::swap(list[a], list[b]);
      continue;
    }
    current = proposed;
    if (current >= best) continue;
    best = current;
    best_main = main_;
    best_terminal = terminal_;
  }
  main_ = std::move(best_main);
  terminal_ = std::move(best_terminal);
}

std::vector<u64> ChainAnnealer::main() const {
  std::vector<u64> primes = problem_.base;
  for (u32 i = 0; problem_.base_count + i < main_count_; ++i)
    primes.push_back(problem_.main_pool[main_[i]]);
  return primes;
}

std::vector<u64> ChainAnnealer::terminal() const {
  std::vector<u64> primes;
  for (u32 t = 0; t < terminal_count_; ++t) primes.push_back(problem_.terminal_pool[terminal_[t]]);
  return primes;
}

}  // namespace crenel::ckks
