// LWE ciphertexts into the coefficients of one ciphertext of level 0 (docs/theory/bridge.md,
// "Packing").
#pragma once

#include "ckks/evaluator_state.h"
#include "ckks/monomial.h"
#include "device/torus/kernels.h"
#include "rlwe/ring_switch.h"

namespace crenel::bridge {

/// Place of slot j among the coefficients that are a stride of N / (2 slots) apart: its bits
/// reversed.
u64 place_of(u64 j, u64 slots);

class Packing {
 public:
  /// Of `count` rows (a power of two, at most N/2) of a degree `dim`, modulo 2^log_modulus.
  Packing(const rlwe::RingContext& ring, u64 count, u32 dim, u32 log_modulus);

  /// Rotations that it needs keys for: 1, 2, 4, ..., count / 2.
  std::vector<i64> rotations() const;
  u64 bytes() const { return rows_.bytes() + monomials_.bytes(); }
  /// Row j's phase, times q0 / 2^log_modulus, as coefficient place_of(j) N / (2 count) of a
  /// ciphertext of level 0 whose other coefficients mean nothing. StateError where there is no
  /// room.
  rlwe::Poly operator()(const ckks::Evaluator& evaluator, device::TorusKernels& torus,
                        const rlwe::RingSwitch& rings, const rlwe::KeyView& key,
                        const u32* rows) const;

 private:
  u32 groups() const { return static_cast<u32>(count_ / each_); }
  /// Ciphertexts of N / dim rows each under s, of groups [first, first + count).
  rlwe::Poly switched(const ckks::Evaluator& ev, device::TorusKernels& torus,
                      const rlwe::RingSwitch& rings, const rlwe::KeyView& key, const u32* rows,
                      u32 first, u32 count) const;
  /// The halves of a batch into one, as long as there are two, from the doubling `level` on.
  ckks::Ciphertext merged(const ckks::Evaluator& ev, ckks::Ciphertext a, u32 level) const;

  const rlwe::RingContext& ring_;
  u64 count_;
  u32 dim_, log_modulus_;
  u32 each_;  ///< rows of a group
  rlwe::Scalars factor_;
  device::Buffer rows_;  ///< [group][N / dim]
  ckks::MonomialGrid monomials_;
};

}  // namespace crenel::bridge
