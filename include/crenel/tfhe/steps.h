// Several forms of one bootstrapping key: by how many secret bits a rotation steps, and which batch
// takes which. docs/theory/tfhe.md, "Bootstrapping".
#pragma once

#include <span>
#include <vector>

#include "crenel/tfhe/context.h"

namespace crenel::tfhe {

/// Bytes on the device of the keys for rotations by `step` bits a step, beside others of the same
/// client: exact. What Params::with_step throws.
u64 step_bytes(const Context& context, u32 step);

/// Which of `steps` a batch takes on this context's device, by what was measured there, for
/// EvaluatorOptions::step_table. UnsupportedError where nothing was measured of this set on such a
/// device; ParameterError for no steps.
StepTable measured_step_table(const Context& context, std::span<const u32> steps);

/// The step of a batch of so many rotations. Expects a table with a rule.
u32 step_of(const StepTable& table, u64 rotations);

}  // namespace crenel::tfhe
