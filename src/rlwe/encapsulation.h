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

/// OverModRaise: special primes that the modulus is raised beyond that of a level by, S their
/// product. Dividing by S ends the first factor of CoeffToSlot, which then takes no level.
inline constexpr u32 kOverPrimes = 2;
/// Whether the special primes that are left, P / S, keep the errors of keys below the rounding of
/// the division by P: q0 sqrt(N) 2^8 at least, for a level 0 of `base_bits` and special primes of
/// `special_bits` together.
bool supports_over_mod_raise(u32 log_n, double base_bits, u32 special_primes, double special_bits);
bool supports_over_mod_raise(const RingContext& ring);
/// UnsupportedError unless that is so.
void expect_over_mod_raise(const RingContext& ring);
/// Chain primes and those of S.
LimbSet with_over_primes(const RingContext& ring, const LimbSet& chain);
/// P / S modulo each of `limbs`.
Scalars over_scalars(const RingContext& ring, const LimbSet& limbs);

/// A ciphertext of the sparse secret at a modulus beyond that of its level: its integers as they
/// stand, in (-q0/2, q0/2). Evaluation form.
struct Raised {
  Poly b;  ///< on the window and the primes of S
  Poly a;  ///< on the window and all special primes
};

/// Both directions; the tables of one ring, made once. Ciphertexts are (b, a) in evaluation form,
/// batch entries independent.
class Encapsulation {
 public:
  /// Throws UnsupportedError as encapsulation_limbs does.
  explicit Encapsulation(const RingContext& ring);

  /// Level 0 to level 0: the same message under the sparse secret. Adds errors of variance
  /// 10.5 N (k / 12) (q0 / P')^2, of a digit of k primes, and (weight + 1) / 12, of the division by
  /// P', which rounds.
  Poly to_sparse(device::Stream& stream, ConstView ciphertext,
                 const KeyView& dense_to_sparse) const;
  /// ModRaise. A ciphertext of level 0 under the sparse secret is lifted as it stands, to the
  /// integers in (-q0/2, q0/2), at the modulus of `level`, where it decrypts to m + q0 I with
  /// |I| <= (weight + 1) / 2; then it is switched to the dense secret.
  Poly raise(device::Stream& stream, ConstView sparse_ciphertext, const KeyView& sparse_to_dense,
             u32 level) const;
  /// OverModRaise: the lift alone, beyond the modulus of `level`; the switch to the dense secret is
  /// the first factor's (EncapsulationKeys::turned).
  Raised over_raise(device::Stream& stream, ConstView sparse_ciphertext, u32 level) const;

 private:
  /// The integers of one polynomial, reduced modulo `limbs`.
  Poly lift(device::Stream& stream, ConstView polynomial, const LimbSet& limbs) const;

  const RingContext& ring_;
  device::Prepared<rns::ModUp> mod_up_;     ///< window of level 0 to q0 P'
  device::Prepared<rns::Divide> mod_down_;  ///< division by P'
};

}  // namespace crenel::rlwe
