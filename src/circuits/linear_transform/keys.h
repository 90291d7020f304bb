// Keys that a circuit needs, checked before any work.
#pragma once

#include "ckks/evaluator_state.h"

namespace crenel::circuits {

/// KeyMissingError that names every rotation without a key (and the conjugation when asked for).
void require_rotations(const ckks::Evaluator::State& s, std::span<const i64> steps, u64 slots,
                       bool conjugation = false);

}  // namespace crenel::circuits
