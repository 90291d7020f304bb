// The rings that packing computes in, each with one level, that of the two primes of the CKKS
// ring's level 0 (docs/theory/bridge.md, "Packing").
#pragma once

#include <memory>

#include "crenel/bridge/bridge.h"
#include "rlwe/ring_context.h"

namespace crenel::bridge {

struct Rings {
  /// Of the smallest degree, above that of the TFHE ring, at which keys modulo level 0 and one
  /// special prime are as secure as the CKKS set, up to 128 bits: two digits of a prime each.
  std::shared_ptr<const rlwe::RingContext> middle;
  /// Of the degree of the CKKS ring, with the special primes of encapsulation: one digit.
  std::shared_ptr<const rlwe::RingContext> last;

  /// Rows that a ciphertext of `middle` has room for.
  u64 rows() const { return middle->ring_dim() / 2; }
};

/// Made once a context of CKKS and degree of a TFHE ring. UnsupportedError where level 0 has other
/// than two primes, there are not two special ones, or no middle ring is smaller than the last.
std::shared_ptr<const Rings> make_rings(const ckks::Context& ckks, u32 small_degree);

/// log2 of the modulus of a ring's switching keys, special primes included.
double log_modulus(const rlwe::RingContext& ring);
/// Galois element of a merge that brings neighbours to distance N / 2^level (level >= 2).
u64 merging_element(const rlwe::RingContext& ring, u32 level);
/// Variance of the errors that a switch of a ciphertext of level 0 adds: of the digits under
/// errors of variance 10.5, and of the division by the special primes, of a secret of this E|s|^2.
double switch_variance(const rlwe::RingContext& ring, double secret);

}  // namespace crenel::bridge
