// A product of two ciphertexts before its relinearisation, as what it is made of: the three
// components are made by the passes of the key switch, and never stored
// (device::PolyKernels::key_switch_product).
#pragma once

#include "ckks/evaluator_state.h"

namespace crenel::ckks {

/// s a b + constant + sum_k factors[k] addends[k], s = 1 or 2. What the views show outlives it, or
/// is kept.
struct PendingProduct {
  rlwe::ConstView a, b;  ///< two components, limbs of the level; the same view of a square
  Metadata meta;         ///< of the sum
  bool doubled = false;
  std::optional<rlwe::Scalars> constant = {};
  std::vector<rlwe::ConstView> addends = {};  ///< all of two components, or all of three
  std::vector<rlwe::Scalars> factors = {};
  std::vector<Ciphertext> kept = {};

  device::ProductSum sum() const;
};

/// The limbs of `level`, at the level of a or at one that limbs can be dropped to.
rlwe::ConstView view_at(const Evaluator::State& s, const Ciphertext& a, u32 level);

/// a b and a^2, with the refusals of Evaluator::multiply_lazy and square_lazy.
PendingProduct pending_product(const Evaluator::State& s, const Ciphertext& a, const Ciphertext& b);
PendingProduct pending_square(const Evaluator::State& s, const Ciphertext& a);
/// 2 a^2 + constant
PendingProduct pending_double_square(const Evaluator::State& s, const Ciphertext& a,
                                     double constant);

/// The three components.
Ciphertext made(const Evaluator::State& s, const PendingProduct& product);
/// Two components: relinearise(made(product)), and relinearise_rescale, refusals too.
Ciphertext relinearised(const Evaluator::State& s, const PendingProduct& product);
Ciphertext relinearised_rescaled(const Evaluator::State& s, const PendingProduct& product);

}  // namespace crenel::ckks
