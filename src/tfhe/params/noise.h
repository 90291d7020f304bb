// The noise model on plans: what Params and its checks share.
#pragma once

#include "crenel/tfhe/params.h"
#include "device/torus/plan.h"

namespace crenel::tfhe {

/// random::error_value: centred binomial of 21 pairs of coins.
inline constexpr double kErrorVariance = 10.5;

NoiseBudget noise_budget(const device::TorusPlan& plan, double sigma);
/// Variance at q of a bootstrapped ciphertext's phase error, without rotation_rounding.
double fresh_variance(const device::TorusPlan& plan, const NoiseBudget& budget);
double failure_log2(const device::TorusPlan& plan, double sigma, double norm2, u32 plain_modulus);

/// Why no backend may run this plan, or "" when all may: what device::check says, or that the
/// double-precision transform of its arithmetic is not safe.
///
/// The transform's error is compared with all that a fresh ciphertext carries. Gadget sets are
/// published for exact arithmetic with bases as large as that allows: it may be 1/32 of the
/// variance. A set with modulus raising chooses the rounding of its products with Q, and
/// failure_log2 counts the transform in full: it may be half.
std::string plan_problem(const device::TorusPlan& plan);

}  // namespace crenel::tfhe
