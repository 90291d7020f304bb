// Keys that a circuit needs, checked before any work.
#pragma once

#include "ckks/evaluator_state.h"

namespace crenel::circuits {

/// The steps for which there is no key of this level.
std::vector<i64> missing_rotations(const ckks::Evaluator::State& s, std::span<const i64> steps,
                                   u64 slots, u32 level);
/// KeyMissingError that names every rotation without a key of this level.
void require_rotations(const ckks::Evaluator::State& s, std::span<const i64> steps, u64 slots,
                       u32 level);

}  // namespace crenel::circuits
