// Exact-to-the-last-digit bookkeeping of moduli and scales.
#pragma once

#include <span>
#include <vector>

#include "crenel/ckks/params.h"

namespace crenel::ckks {

/// log2 of a product of primes.
long double log2_product(std::span<const u64> primes);

/// log2 Q_l of every level.
std::vector<double> level_log_q(const Spec& spec);

/// rp(l) = Q_l / Q_{l-1}; entry 0 is 1. Formed from the primes that differ, and rounded once.
std::vector<double> rescale_ratios(const Spec& spec);

/// Canonical scales of levels 0..normal_top_level: s_0 = 2^log_scale, s_l = sqrt(s_{l-1} rp(l)),
/// rounded once. The same bits on every processor.
std::vector<double> canonical_scales(const Spec& spec);

/// max_l |log2 s_l - log_scale| over the normal levels, in bits; `worst` receives that level.
double scale_deviation(const Spec& spec, u32* worst = nullptr);

}  // namespace crenel::ckks
