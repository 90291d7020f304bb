// The checks behind Params::validate.
#pragma once

#include <string>
#include <vector>

#include "crenel/ckks/params.h"

namespace crenel::ckks {

/// Largest |log2 s_l - log_scale| of a normal level.
inline constexpr double kMaxScaleDeviation = 0.1;
/// Q_0 must leave this many bits above the scale for the sign and size of a decrypted value.
inline constexpr double kMinBaseHeadroom = 3;

/// `value` with `digits` decimals, for messages.
std::string fixed(double value, int digits);

/// log2 of the product of every prime of the set.
double log2_pq(const Spec& spec);

std::vector<SpecProblem> validate_spec(const Spec& spec, bool allow_insecure);

}  // namespace crenel::ckks
