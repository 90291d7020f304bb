// Dropping limbs, shared by the evaluator's files.
#pragma once

#include "ckks/evaluator_state.h"

namespace crenel::ckks {

/// Is the window of level `to` a part of the window of level `from`?
bool can_drop_to(const Params& params, u32 from, u32 to);
/// The same message and scale modulo the smaller modulus; needs can_drop_to.
Ciphertext drop_limbs(const Evaluator::State& s, const Ciphertext& a, u32 level);

}  // namespace crenel::ckks
