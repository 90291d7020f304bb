// Sparse-secret encapsulation (docs/theory/bootstrapping.md, "Encapsulation"): a ciphertext of the
// last level goes under an ephemeral sparse secret, so that the multiples of q0 that raising the
// modulus brings in stay few, and comes back under the dense secret at the top.
#pragma once

#include "rlwe/keys.h"
#include "rlwe/ring_context.h"

namespace crenel::rlwe {

/// Hamming weight of the ephemeral secret.
inline constexpr u32 kEncapsulationWeight = 32;

/// Whether the ring has what encapsulation needs: one or two primes at level 0, with a product
/// below 2^62, and two special primes.
bool supports_encapsulation(const RingContext& ring);
/// UnsupportedError unless that is so, of a level 0 of `base_primes` with a product of `base_bits`.
void expect_encapsulation(u32 base_primes, double base_bits, u32 special_primes);
/// Basis of EncapsulationKeys::dense_to_sparse, modulo q0 P': the window of level 0, then the first
/// two special primes. Throws UnsupportedError where encapsulation is not supported.
LimbSet encapsulation_limbs(const RingContext& ring);
/// Special primes that P' is the product of.
inline constexpr u32 kEncapsulationPrimes = 2;

/// Both directions; the tables of one ring, made once. Ciphertexts are (b, a) in evaluation form,
/// batch entries independent.
class Encapsulation {
 public:
  /// Throws UnsupportedError as encapsulation_limbs does.
  explicit Encapsulation(const RingContext& ring);

  /// Level 0 to level 0: the same message under the sparse secret. Adds errors of variance
  /// 10.5 N (k / 12) (q0 / P')^2, of a digit of k primes, and (2 / 12) (weight + 1), of a division
  /// by two.
  Poly to_sparse(device::Stream& stream, ConstView ciphertext,
                 const KeyView& dense_to_sparse) const;
  /// ModRaise. A ciphertext of level 0 under the sparse secret is lifted as it stands, to the
  /// integers in (-q0/2, q0/2), at the modulus of `level`, where it decrypts to m + q0 I with
  /// |I| <= (weight + 1) / 2; then it is switched to the dense secret.
  Poly raise(device::Stream& stream, ConstView sparse_ciphertext, const KeyView& sparse_to_dense,
             u32 level) const;

 private:
  /// The integers of one polynomial, reduced modulo `limbs`.
  Poly lift(device::Stream& stream, ConstView polynomial, const LimbSet& limbs) const;

  const RingContext& ring_;
  device::Prepared<rns::ModUp> mod_up_;     ///< window of level 0 to q0 P'
  device::Prepared<rns::Divide> mod_down_;  ///< division by P'
};

}  // namespace crenel::rlwe
