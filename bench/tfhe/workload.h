// Encrypted inputs, what comes out of them in the clear, and the long check of failures.
#pragma once

#include <random>

#include "crenel/tfhe/context.h"
#include "tfhe/operation.h"

namespace crenel::bench {

/// Encrypted inputs of some messages with what the operation makes of them.
struct Workload {
  std::vector<tfhe::Ciphertext> inputs;
  std::vector<std::vector<u64>> expected;  ///< of each output
  Operation::Inputs pointers() const;
};

Workload draw(tfhe::Client& client, const Operation& op, u64 size, std::mt19937_64& rng);

/// Messages that differ from what was expected; all ones when there are more or fewer of them.
u64 failures(const tfhe::Client& client, const std::vector<tfhe::Ciphertext>& outputs,
             const std::vector<std::vector<u64>>& expected);

/// SHA-256 of the messages.
std::string digest(const tfhe::Client& client, const std::vector<tfhe::Ciphertext>& outputs);

/// A sum of messages: m times `factor`, each m below `limit`.
struct SumTerm {
  u64 factor = 0, limit = 0;
};
/// Of terms whose squared factors are max_norm2 in all, or as many as there are below it, with
/// sums below `entries`: what a look-up of a set for tables may read at most.
std::vector<SumTerm> largest_sum(u64 entries, double max_norm2);

/// Gates, or of sets for tables look-ups of random tables at the largest sums that the set
/// promises; inputs come from bootstraps (as the failure probability is stated for), results are
/// decrypted one by one, with the variance of their phases.
class Check {
 public:
  u64 operations = 0, failed = 0;
  double squares = 0.0;
  double norm2 = 2.0;  ///< squared factors of what was read: of gates of two inputs 2
  void run(tfhe::Client& client, const tfhe::Evaluator& ev, u64 wanted, u64 batch,
           std::mt19937_64& rng);

 private:
  void run_gates(tfhe::Client& client, const tfhe::Evaluator& ev, u64 wanted, u64 batch,
                 std::mt19937_64& rng);
  void run_tables(tfhe::Client& client, const tfhe::Evaluator& ev, u64 wanted, u64 batch,
                  std::mt19937_64& rng);
  void count(const tfhe::Client& client, const tfhe::Ciphertext& c,
             const std::vector<u64>& expected, std::vector<u64>& found);
};

}  // namespace crenel::bench
