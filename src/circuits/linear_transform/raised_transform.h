// The first factor of CoeffToSlot after OverModRaise (docs/theory/bootstrapping.md): a linear
// transform of a ciphertext that is still under the sparse secret.
#pragma once

#include "circuits/linear_transform/plaintexts.h"
#include "crenel/circuits/linear_transform.h"
#include "rlwe/encapsulation.h"

namespace crenel::circuits {

/// Most diagonals: each has a key of its own, and there are no giant steps.
inline constexpr u64 kMostRaisedDiagonals = 32;

/// log2 of S, the product of the special primes that the transform's plaintexts are encoded at.
double log_over_scale(const ckks::Params& params);
/// Whether the parameters' special primes suffice.
bool supports_over_mod_raise(const ckks::Params& params);
/// Of the device memory for its plaintexts.
u64 raised_plaintext_bytes(const ckks::Context& context, const DiagonalMatrix& matrix, u32 level);

/// sum_k d_k rotate_k(v) of a raised ciphertext v: every rotation is one product with a key that
/// leads back to the dense secret (rlwe::EncapsulationKeys::turned), since the polynomial is its
/// own digit; plaintexts are encoded at S; one division by P = S (P / S) takes both their scale and
/// that of the keys away. No level, no ModUp. Immutable: any number of threads may apply it.
class RaisedTransform {
 public:
  /// Advances a task of all diagonals by one for each; asks for no memory. ParameterError for more
  /// diagonals than kMostRaisedDiagonals.
  RaisedTransform(const ckks::Context& context, const DiagonalMatrix& matrix, u32 level);

  u32 level() const { return level_; }
  /// Of the keys, in [0, slots), ascending; 0 among them where there is such a diagonal.
  const std::vector<u64>& steps() const { return steps_; }
  u64 plaintext_bytes() const { return plaintexts_.bytes(); }
  /// As LinearTransform::working_bytes.
  u64 working_bytes(u32 batch) const;

  /// The result at level(), under the dense secret. KeyMissingError names a key that is not there.
  rlwe::Poly operator()(const ckks::Evaluator& evaluator, const rlwe::Raised& v) const;

 private:
  ckks::Context context_;
  u32 level_;
  std::vector<u64> steps_;
  rlwe::Scalars factor_;  ///< P / S
  DiagonalPlaintexts plaintexts_;
};

}  // namespace crenel::circuits
