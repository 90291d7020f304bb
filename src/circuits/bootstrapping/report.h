// The report of a bootstrap: sizes and expected precision.
#pragma once

#include "circuits/bootstrapping/plan.h"
#include "circuits/bootstrapping/precision.h"

namespace crenel::circuits {

/// The error model of a plan's bootstrap (one iteration).
BootstrapModel model_of(const ckks::Params& params, const BootstrapPlan& plan);

/// Everything but the keys' and plaintexts' sizes, from the plan alone.
BootstrapReport report_of(const ckks::Params& params, const BootstrapPlan& plan);

/// Expected largest slot error for a kind of message.
double expected_error_of(const ckks::Params& params, const BootstrapPlan& plan,
                         const Message& message);

/// Upper bound of the memory that one bootstrap of a ciphertext takes from the stream's pool
/// besides keys and plaintexts.
u64 workspace_bytes(const ckks::Params& params, const BootstrapPlan& plan);

/// log2 of the factor by which a second iteration enlarges the first one's error: as large as keeps
/// it below the bound of messages. 0 for one iteration.
u32 correction_bits(const ckks::Params& params, const BootstrapPlan& plan);

}  // namespace crenel::circuits
