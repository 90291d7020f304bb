// Expected precision of a bootstrap, as formulas: what `describe()` prints and what the precision
// tests hold measurements against (docs/theory/precision.md). No device, no randomness.
#pragma once

#include <optional>
#include <vector>

#include "circuits/mod1/sine_fit.h"
#include "ckks/noise.h"
#include "crenel/circuits/bootstrapping.h"

namespace crenel::circuits {

/// One level of CtS or StC: consecutive butterfly stages in one linear transform and one rescale.
struct TransformLevel {
  u32 stages;
  double log_ratio;  ///< log2 rp of the level: also what diagonals are encoded at
  std::optional<double> log_gain = {};  ///< log2 of its share of c_CtS or c_StC; even by default
};

/// A bootstrap as far as its errors go. The defaults are those of the set boot40, without
/// OverModRaise.
struct BootstrapModel {
  u32 log_n = 16;
  u64 slots = u64{1} << 15;
  u32 pack = 1;            ///< vectors in it, of slots / pack each: errors are theirs
  double log_q0 = 49.978;  ///< log2 Q_0
  u32 message_ratio = 5;   ///< rho: the message enters at the scale Q_0 / 2^rho
  Mod1Params mod1;
  u32 arcsine_degree = 0;            ///< 0 (off), 3, 5, 7
  double log_scale = 40.0;           ///< log2 s_out, scale of the result
  double log_mod1_scale = 58.0;      ///< log2 E
  double log_arcsine_scale = 51.28;  ///< after the arcsine, where there is one; else E
  u32 dense_weight = 1u << 15;
  std::vector<TransformLevel> cts{{4, 49.973}, {3, 49.978}, {4, 59.998}, {4, 60.0}};
  std::vector<TransformLevel> stc{{5, 40.002}, {5, 39.995}, {5, 40.003}};
  /// Double hoisting: one ModDown after the sum of products. false: Min-KS, one at every rotation.
  bool hoisted = true;
  /// The first level of CtS is of the ciphertext under the sparse secret: no switch before it, no
  /// level (diagonals are encoded at log_ratio all the same), and the trace comes after it.
  bool over_mod_raise = false;
  /// The conjugation after CtS acts on the ciphertext before the last rescale.
  bool conjugate_before_rescale = false;
  /// The conjugate is added at the end: errors are real, and those of slots come twice.
  bool real_part = false;
  /// With real_part, a message that was made symmetric before ModRaise: the first half of the
  /// coefficients is all that is there.
  bool symmetric = false;
  /// StC first: log2 of the scale of the diagonals that join real and imaginary parts, if they do.
  std::optional<double> log_halves_scale = {};
};

/// Of the slots: root mean square, and expected largest absolute value.
struct SlotError {
  double rms = 0.0;
  double max = 0.0;
};

struct PrecisionEstimate {
  SlotError sine;      ///< x - sin(2 pi x) / 2 pi, after the arcsine if any; depends on the message
  SlotError fit;       ///< the polynomial against the sine
  SlotError raise;     ///< both encapsulation key switches
  SlotError cts;       ///< CtS and the conjugation
  SlotError eval_mod;  ///< roundings of EvalMod
  SlotError stc;       ///< StC without its last rounding
  SlotError output;    ///< the rounding of the last rescale, at the output scale, and unpacking
  SlotError total;
};

/// Errors are absolute, of slots bounded by `message.bound`. Throws ParameterError.
PrecisionEstimate estimate_precision(const BootstrapModel& model, const Message& message);

/// log2 of the probability that a bootstrap fails since some |I| >= K.
double log2_failure_probability(const BootstrapModel& model);

struct RatioChoice {
  u32 message_ratio;
  double bits;   ///< -log2 of the expected largest slot error with it
  bool reached;  ///< bits >= wanted
};
/// The smallest rho that reaches `wanted_bits`, or the best one where none does.
RatioChoice recommended_message_ratio(const Message& message, double wanted_bits,
                                      BootstrapModel model = {});

/// StC first: the roundings of the diagonals that join real and imaginary parts, for |slot| <= 1.
SlotError halves_error(const BootstrapModel& model);

// ---- Parts, for tests and for callers that measure one operation. ----

/// The sine part alone: all of the error were EvalMod exact and noiseless.
SlotError sine_error(const BootstrapModel& model, const Message& message);

/// f(x) - x for |x| <= 1/2, with f the sine followed by the arcsine series. Keeps its relative
/// precision where f(x) and x agree to more digits than a double has.
double modular_error(double x, u32 arcsine_degree);

/// Mean square of the slots of a message.
double mean_square(const Message& message, u64 slots);

/// Variance of a coefficient's error: division of a ciphertext by any number of primes, rounded to
/// the nearest in both polynomials (rns::Quotient), under a secret of `weight` nonzero
/// coefficients. Rescale, ModDown and both merged are one each. The gadget term of a key switch is
/// below 2^-15 of its ModDown, and left out.
inline double rescale_variance(double weight) { return ckks::noise::division(weight); }
/// Coefficient variance to root mean square and expected maximum of the (complex) slots.
SlotError slot_error(double coefficient_variance, u32 log_n, u64 slots, double log_scale);
/// Expected maximum of `slots` complex Gaussians, in units of their root mean square.
double maximum_factor(u64 slots);
/// The same of real ones.
double real_maximum_factor(u64 slots);

/// Sum of squared sensitivities of the double angles' result to the rounding of each rescale inside
/// EvalMod, over I ~ P: output variance / variance of one rounding, both of slots at the scale E.
double mod1_noise_gain(const Mod1Params& params);
/// The same for every integer I = -range .. range (index I + range).
std::vector<double> mod1_noise_gains(const Mod1Params& params);

}  // namespace crenel::circuits
