// Everything that touches the secret key. Rules here: no branch and no address depends on a secret,
// secret memory is allocated as such (wiped on release), nothing is printed.
#pragma once

#include <span>
#include <vector>

#include "rlwe/keys.h"
#include "rlwe/ring_context.h"

namespace crenel::rlwe {

class SecretKey {
 public:
  /// Fresh key: hamming_weight 0 draws ternary coefficients with P(+-1) = 1/4, otherwise exactly
  /// that many nonzero ones. All randomness of this key's samples comes from `source`.
  SecretKey(std::shared_ptr<const RingContext> ring, random::SecretSource source,
            u32 hamming_weight);
  /// From exported coefficients (each -1, 0 or 1).
  SecretKey(std::shared_ptr<const RingContext> ring, random::SecretSource source,
            std::span<const i8> coefficients);
  /// The secret of `same` on another ring of its degree, whose primes are those of `at` there.
  SecretKey(std::shared_ptr<const RingContext> ring, random::SecretSource source,
            const SecretKey& same, const LimbSet& at);

  /// b = -a s + e + message, a from a fresh public seed (written to `seed`). `message` has
  /// coefficient form, 1 component, the window of a level; the result has evaluation form.
  Poly encrypt(ConstView message, random::Seed& seed);
  /// b + a s (+ c s^2), coefficient form, limbs of the ciphertext; secret memory.
  Poly decrypt(ConstView ciphertext) const;
  PublicKey make_public_key();
  /// From s^2 to s. `max_level`: highest level that the key serves (SwitchKey), or aligned_level().
  SwitchKey make_relinearisation_key(u32 max_level = SwitchKey::kAny);
  /// From s to element^-1(s) (KeySwitcher applies the automorphism last).
  SwitchKey make_galois_key(u64 element, u32 max_level = SwitchKey::kAny);
  /// To a fresh sparse secret of this Hamming weight and back, and back through each of these
  /// automorphisms (ascending, none twice; UnsupportedError with too few special primes for any).
  /// That secret exists in this call only; the one sample ever made under it has modulus q0 P':
  /// whoever calls this checks that it may be.
  EncapsulationKeys make_encapsulation_keys(u32 weight, std::span<const u64> turned = {});
  /// From s to z(X^D), `small` the coefficients of z, a power of two of them that divides N, each
  /// -1, 0 or 1: modulo q0 = q p, the two primes of level 0, under z(X^D); carries p s. The only
  /// sample that there is of z, N / D of them at degree N / D. UnsupportedError as
  /// expect_ring_switch throws it.
  SwitchKey make_ring_switch_down(std::span<const i8> small);
  /// From z(X^D) to s, at level 0.
  SwitchKey make_ring_switch_up(std::span<const i8> small);
  /// The coefficients, for an explicit export only.
  core::SecretVector<i8> export_coefficients() const;
  random::SecretSource& source() { return source_; }

 private:
  SwitchKey make_switch_key(ConstView from, ConstView under, u32 max_level);
  /// Samples [first, first + count) of `of` of zero under `under` (1 component, `limbs`):
  /// b_j = -a_j under + e_j. The others take their part of the randomness too: what is made of some
  /// digits is a part of what would be made of all.
  SwitchKey sample_zero(ConstView under, const LimbSet& limbs, u32 first, u32 count, u32 of);

  std::shared_ptr<const RingContext> ring_;
  random::SecretSource source_;
  Poly key_;  ///< s, evaluation form, every prime
};

/// Small integers as a polynomial, evaluation form; secret memory.
Poly embed_secret(const RingContext& ring, std::span<const i8> coefficients, const LimbSet& limbs);

/// Public-key encryption: (b v + e0 + message, a v + e1), evaluation form; message as in encrypt().
Poly encrypt_with_public_key(const RingContext& ring, const PublicKey& key, ConstView message,
                             random::SecretSource& source);

/// Expands the uniform component(s) of a sample from its public seed: batch entry j uses serial
/// first + j. On the ring's stream, or on another of its device.
void expand_uniform(const RingContext& ring, View out, const random::Seed& seed, u32 first = 0);
void expand_uniform(const RingContext& ring, device::Stream& stream, View out,
                    const random::Seed& seed, u32 first = 0);

}  // namespace crenel::rlwe
