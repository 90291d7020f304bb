// Security estimate of RLWE parameters from published tables; SECURITY.md says what they assume.
#pragma once

#include <string>

#include "crenel/ckks/params.h"

namespace crenel::ckks {

/// The source of the bound that max_log_pq(log_n, 128, hamming_weight) returns, for messages.
std::string security_source(u32 hamming_weight);

/// Estimated classical security in bits of one RLWE secret used with modulus 2^log_pq.
///
/// Interpolated, not estimated: between two table points (lambda_i, B_i) lambda is affine in
/// 1/log_pq, beyond the last ones proportional to it. The result is >= 128 exactly when
/// log_pq <= max_log_pq(log_n, 128, weight). Capped at 256 for dense secrets, and at 128 for sparse
/// ones: hybrid attacks flatten the curve there and the table has the one level only. 0 when no
/// table covers (log_n, weight).
double estimate_security_bits(u32 log_n, double log_pq, u32 hamming_weight);

}  // namespace crenel::ckks
