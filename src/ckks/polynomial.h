// Polynomials at a prescribed level and scale, for circuits whose levels have no canonical scale.
#pragma once

#include "ckks/evaluator_state.h"

namespace crenel::ckks {

/// sum_k c_k x_k + constant at `scale`, unrescaled: constant k is encoded at scale / x_k.scale. All
/// x of one level, slot count, batch and number of components; at least one.
Ciphertext linear_combination(const Evaluator::State& s, std::span<const Ciphertext* const> x,
                              std::span<const double> c, double constant, double scale);

/// 2 a^2 + constant, three components: from T_k to T_2k, and the double angle.
Ciphertext double_square(const Evaluator::State& s, const Ciphertext& a, double constant);

/// sum_k c_k x^k or sum_k c_k T_k(x), degree >= 1, at exactly this level and scale, rescaled. x
/// must be at level >= level + polynomial_depth(degree); every intermediate has the scale that
/// squaring and rescaling gives it. Basis elements up to index `precise` are divided by P before
/// they are rescaled: dearer than both at once, but rounded by the few primes of the level instead
/// of those and P's.
Ciphertext evaluate_polynomial(const Evaluator& ev, const Ciphertext& x, std::span<const double> c,
                               PolynomialBasis basis, u32 level, double scale, u32 precise = 0);

}  // namespace crenel::ckks
