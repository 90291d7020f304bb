// Checks of a Spec.
#pragma once

#include <string>
#include <vector>

#include "crenel/tfhe/params.h"

namespace crenel::tfhe {

inline constexpr u32 kMaxSlots = 16;

/// The library's own set with these numbers, whatever name and claims `spec` has; its arithmetic
/// may be another. Null: none.
const Spec* own_set(const Spec& spec);
/// What may be believed of the set's security: its claim, at most what own_set or else the
/// estimate says.
double believed_security(const Spec& spec);
/// Below today's norm, in one sentence: "" where neither is.
std::string shortfall(const std::string& name, double security_bits, double p_fail_log2);
/// Whether a set may be below the norm without allow_insecure: where the published set of these
/// numbers is so as it stands, and this one claims no larger sums. Toys may not. What slots,
/// another arithmetic or a claim alone bring below the norm was never published.
bool may_be_below_norm(const Spec& spec);

std::vector<std::string> validate_spec(const Spec& spec, bool allow_insecure);

}  // namespace crenel::tfhe
