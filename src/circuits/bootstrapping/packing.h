// Vectors side by side in one, by monomials: docs/theory/bootstrapping.md, "Several ciphertexts in
// one".
#pragma once

#include <optional>
#include <vector>

#include "ckks/evaluator_state.h"
#include "ckks/monomial.h"

namespace crenel::circuits {

/// K vectors y_k of n slots, polynomials in X^(N / 2n), as c = sum_k X^(k s) y_k, s = N / (2 n K):
/// a vector of K n slots. Its coefficients are theirs, interleaved, so that none is larger. No key,
/// no level. K rows of a batch are y_0, ..., y_(K-1), each of as many rows as c has.
class MonomialPacking {
 public:
  /// pack() at level `in`, unpack() at level `out`; K = 1 is the identity.
  MonomialPacking(const rlwe::RingContext& ring, u64 slots, u32 count, u32 in, u32 out);

  ckks::Ciphertext pack(const ckks::Evaluator& evaluator, const ckks::Ciphertext& rows) const;
  /// K y_k: a half of the rotations of X^(k s) y_k are its negative, so that a sum and a difference
  /// with one rotation have the even and the odd k, and so on. Each of log2 K stages rotates all
  /// rows at once, by rotations() from the last one back.
  ckks::Ciphertext unpack(const ckks::Evaluator& evaluator, ckks::Ciphertext packed) const;
  u64 bytes() const;

  /// n, 2 n, ..., K n / 2, of vectors of all N / 2 slots.
  static std::vector<i64> rotations(u64 slots, u32 count);

 private:
  u64 slots_;
  u32 count_;
  std::optional<ckks::MonomialGrid> together_;
  std::vector<ckks::MonomialGrid> apart_;  ///< by stage: [even, odd][as it is, rotated]
};

}  // namespace crenel::circuits
