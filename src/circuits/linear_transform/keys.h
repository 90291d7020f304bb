// Keys that a circuit needs, checked before any work.
#pragma once

#include "ckks/evaluator_state.h"

namespace crenel::circuits {

/// The steps for which there is no key.
std::vector<i64> missing_rotations(const ckks::Evaluator::State& s, std::span<const i64> steps,
                                   u64 slots);
/// KeyMissingError that names every rotation without a key.
void require_rotations(const ckks::Evaluator::State& s, std::span<const i64> steps, u64 slots);

}  // namespace crenel::circuits
