// The noise model on plans: what Params and its checks share.
#pragma once

#include "crenel/tfhe/params.h"
#include "device/torus/kernels.h"
#include "device/torus/plan.h"

namespace crenel::tfhe {

/// The mean square of a uniform ternary value.
inline constexpr double kTernarySquare = 2.0 / 3;

inline double squared(double x) { return x * x; }

/// random::error_value: centred binomial of 21 pairs of coins.
inline constexpr double kErrorVariance = 10.5;

NoiseBudget noise_budget(const device::TorusPlan& plan, double sigma);
/// Variance at q of a bootstrapped ciphertext's phase error, without rotation_rounding.
double fresh_variance(const device::TorusPlan& plan, const NoiseBudget& budget);
double failure_log2(const device::TorusPlan& plan, double sigma, double norm2, u32 plain_modulus);

/// Variance of a bootstrap's result modulo 2^log_modulus <= Q_KS, in units of that modulus.
double bootstrap_variance(const device::TorusPlan& plan, const NoiseBudget& budget,
                          u32 log_modulus);
/// What reading phases modulo 2^log_modulus on 2N steps adds, in units of that modulus. With groups
/// the key switch is a part of it.
double reading_variance(const device::TorusPlan& plan, u32 log_modulus);
double reading_variance(const device::TorusPlan& plan, const NoiseBudget& budget, u32 log_modulus);
/// What the switch from 2^log_from to 2^log_to adds to ciphertexts at rest, in units of the latter.
double switching_variance(const device::TorusPlan& plan, u32 log_from, u32 log_to);
/// The same of a ciphertext that was switched and rounded for storage (Evaluator::compress).
double stored_variance(const device::TorusPlan& plan, const NoiseBudget& budget);
/// What Evaluator::pack adds, modulo q.
double packing_variance(const device::TorusPlan& plan, const device::SwitchShape& shape,
                        double sigma);
/// log2 of 2 exp(-margin^2 / (2 variance)), at most 0: 0 for no margin, -infinity without noise.
double tail_log2(double variance, double margin);
/// log2 of the modulus by which tables without padding are read at worst: 2 q where the set has
/// tables without symmetry, else q.
u32 table_log_modulus(const device::TorusPlan& plan);
/// What Params::p_fail_log2 states: the worst of gates of two inputs, of sums of `max_norm2` and,
/// of sets of functions (no padding, p > 4), of tables of two bootstraps. An input comes from a
/// bootstrap or from an encryption, whichever has more noise.
double promise_log2(const device::TorusPlan& plan, const Spec& spec);

/// Why no backend may run this plan, or "" when all may: what device::check says, or that the
/// double-precision transform of its arithmetic is not safe.
///
/// The transform's error is compared with all that a fresh ciphertext carries. Gadget sets are
/// published for exact arithmetic with bases as large as that allows: it may be 1/32 of the
/// variance. A set with modulus raising chooses the rounding of its products with Q, and
/// failure_log2 counts the transform in full: it may be half. With groups, whose results have
/// little noise beside what reading adds: a quarter of what a sum of `max_norm2` is read with.
std::string plan_problem(const device::TorusPlan& plan, double max_norm2);

}  // namespace crenel::tfhe
