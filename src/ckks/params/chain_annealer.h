// Choice and order of main and terminal primes that keeps the canonical scales near 2^D.
#pragma once

#include <vector>

#include "ckks/params/prime_system.h"

namespace crenel::ckks {

/// log2 in units of 2^-40: sums are exact, so a search takes the same path on every platform.
i64 log2_fixed(u64 p);

/// The search state: base primes are fixed, the others are drawn from pools.
class ChainAnnealer {
 public:
  struct Problem {
    u32 base_count = 0;
    u32 main_bits = 30;
    std::vector<LevelModulus> levels;
    std::vector<u64> base;           ///< base_count primes
    std::vector<u64> main_pool;      ///< candidates near 2^main_bits, nearest first
    std::vector<u64> terminal_pool;  ///< candidates near 2^25, nearest first
  };

  explicit ChainAnnealer(Problem problem);

  /// Greedy start, then threshold accepting with `iterations` proposals.
  void run(u64 seed, u32 iterations);

  std::vector<u64> main() const;
  std::vector<u64> terminal() const;

 private:
  i64 cost();
  void order_terminals();
  void choose_main();

  Problem problem_;
  u32 main_count_ = 0, terminal_count_ = 0;
  std::vector<i64> main_dev_, terminal_dev_;  // log2 p - nominal
  std::vector<u32> main_;  // permutation of the pool; the first main_count_ - base_count are used
  std::vector<u32> terminal_;                 // likewise
  std::vector<i64> main_sum_, terminal_sum_;  // scratch of cost()
};

}  // namespace crenel::ckks
