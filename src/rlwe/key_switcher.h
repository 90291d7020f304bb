// Key switching at any level with the top-level keys; no scheme, no secrets.
#pragma once

#include <span>

#include "rlwe/keys.h"
#include "rlwe/ring_context.h"

namespace crenel::rlwe {

/// Hybrid key switching (docs/theory/ckks-primes.md, "Digits of key switching"). Inputs and outputs
/// in evaluation form on the window of `level`; batch entries are independent ciphertexts.
class KeySwitcher {
 public:
  KeySwitcher(const RingContext& ring, device::Stream& stream) : ring_(ring), stream_(stream) {}

  /// ModUp of a one-component polynomial: one component a digit, extended basis.
  Poly mod_up(ConstView a, u32 level) const;
  /// sum of digits times key: two components, extended basis.
  Poly multiply(const Poly& digits, const KeyView& key, u32 level) const;
  /// A key switch and its ModDown, out has 2 components: of.in to the key's secret, and P times
  /// of.addend (window of the level) or the product's first components with it, for one division of
  /// both; of.factor is set here. After the division + addend (1 or 2 components).
  void switch_down(View out, device::SwitchOf of, const KeyView& key, u32 level,
                   const ConstView* addend = nullptr) const;
  Poly switch_down(const device::SwitchOf& of, const KeyView& key, u32 level,
                   const ConstView* addend = nullptr) const;
  /// The same with ModDown and rescale in one division, by P q..., to level - 1: one rounding.
  Poly switch_rescale(device::SwitchOf of, const KeyView& key, u32 level) const;
  /// out (2 components) = ModDown(acc) + addend (1 or 2 components).
  Poly mod_down(const Poly& acc, u32 level, const ConstView* addend) const;
  /// ModDown and rescale in one division, by P q..., to level - 1: one rounding.
  Poly mod_down_rescale(ConstView acc, u32 level) const;
  /// Applies X -> X^element to every component.
  Poly automorphism(ConstView in, u64 element) const;
  /// sum += switch_key(a) and (addend, 0), rotated: two components, extended basis, which the
  /// addend (1 component) has, too.
  void add_rotated(View sum, ConstView a, const KeyView& key, u64 element, u32 level,
                   const ConstView& addend) const;
  /// rotate() before its division: two components, extended basis.
  Poly rotate_extended(ConstView ciphertext, const KeyView& key, u64 element, u32 level) const;
  /// Full rotation of (b, a): the key decrypts under element^-1(s). With `addend` (1 or 2
  /// components, window of the level): + addend.
  Poly rotate(ConstView ciphertext, const KeyView& key, u64 element, u32 level,
              const ConstView* addend = nullptr) const;
  void rotate(View out, ConstView ciphertext, const KeyView& key, u64 element, u32 level,
              const ConstView* addend) const;
  /// The same with the digits of a at hand (hoisting).
  Poly rotate_hoisted(ConstView b, const Poly& digits, const KeyView& key, u64 element,
                      u32 level) const;
  /// Sum of rotations with one ModUp and one ModDown; keys[i] is not read for element 1.
  Poly rotate_sum(ConstView ciphertext, std::span<const KeyView> keys,
                  std::span<const u64> elements, u32 level) const;
  /// The same before its division: two components, extended basis.
  Poly rotate_sum_extended(ConstView ciphertext, std::span<const KeyView> keys,
                           std::span<const u64> elements, u32 level) const;

 private:
  PolyShape shape(u32 components, u32 batch) const { return {ring_.log_n(), components, batch}; }

  const RingContext& ring_;
  device::Stream& stream_;
};

}  // namespace crenel::rlwe
