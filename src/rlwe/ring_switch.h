// Ring switching (docs/theory/bridge.md): the last level goes under a secret that lies in a
// subring, z(X^D) with z of degree N / D, where coefficients are ciphertexts of a scheme of that
// degree, and comes back.
#pragma once

#include <memory>

#include "rlwe/keys.h"
#include "rlwe/ring_context.h"

namespace crenel::rlwe {

/// UnsupportedError unless level 0 has two primes, which the key there needs: one is its special
/// prime.
void expect_ring_switch(const RingContext& ring);

/// The way there; the tables of one ring, made once.
class RingSwitch {
 public:
  /// Throws UnsupportedError as expect_ring_switch does.
  explicit RingSwitch(const RingContext& ring);

  /// The prime that ciphertexts under z(X^D) have: q, the first of level 0.
  u32 modulus() const { return static_cast<u32>(ring_.modulus(low_[0]).q); }
  /// (b, a) of level 0, evaluation form, batch 1: (b, a) modulo q under z(X^D), coefficient form,
  /// of a message divided by p. Adds errors of variance N 10.5 (q / p)^2 / 12, of the digit of one
  /// prime, (1 + |s|^2) / 12 and (1 + |z|^2) / 12, of two divisions by p.
  Poly down(device::Stream& stream, ConstView ciphertext, const KeyView& key) const;

 private:
  const RingContext& ring_;
  LimbSet low_;                             ///< q
  device::Prepared<rns::ModUp> mod_up_;     ///< q to q p
  device::Prepared<rns::Divide> mod_down_;  ///< division by p
};

/// The way back, on any ring: (b, a) of level 0 under z(X^D), any batch, evaluation form: the same
/// under the ring's own secret. `key`: SecretKey::make_ring_switch_up.
Poly ring_switch_up(const RingContext& ring, device::Stream& stream, ConstView ciphertext,
                    const KeyView& key);

}  // namespace crenel::rlwe
