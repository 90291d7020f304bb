// EvalMod: from t / (q0 w) to (t mod q0) / q0.
#pragma once

#include "circuits/mod1/sine_fit.h"
#include "ckks/evaluator_state.h"

namespace crenel::circuits {

/// The homomorphic sine (docs/theory/bootstrapping.md, "EvalMod") on real slots y = t / (q0 w), w =
/// Mod1Params::width, within [-1, 1] but for the rarest integers: Chebyshev polynomial of
/// y - 1/(4 w), then double angles. Takes bit_width(degree) + double_angles levels. Scales follow
/// squaring and rescaling from the input's scale; `coefficients` as from fit_mod1. `folded`
/// (ckks::CiphertextOps) moves less and gives the same bits.
ckks::Ciphertext eval_mod(const ckks::Evaluator& evaluator, ckks::Ciphertext y,
                          const Mod1Params& params, std::span<const double> coefficients,
                          bool folded = true);

}  // namespace crenel::circuits
