// EvalMod's numbers: the fitted cosine, its error, and how often the fit's range is left.
#pragma once

#include <span>
#include <vector>

#include "crenel/core/types.h"

namespace crenel::circuits {

/// Parameters of EvalMod (docs/theory/bootstrapping.md, "EvalMod"): a Chebyshev fit of
/// c0 cos(2 pi (x - 1/4) / 2^r), then r double angles v -> 2 v^2 - c0^(2^i) that end at
/// sin(2 pi x) / 2 pi.
struct Mod1Params {
  u32 range = 16;               ///< K: |I| < K for the integers I of t = m + q0 I
  u32 degree = 30;              ///< of the fit, even, 2 (range - 1) to 4 (range - 1)
  u32 double_angles = 3;        ///< r
  u32 secret_weight = 32;       ///< h of the sparse secret, for P(I)
  double fit_radius = 0x1p-10;  ///< |frac| that the fit covers (message part of t / q0)
  /// Half the interval of the Chebyshev basis, around 1/4. Below K on purpose: roundings of T_2
  /// reach the result with its square, and those integers that lie outside are so rare that theirs
  /// may be enlarged (docs/theory/precision.md, "Roundings inside EvalMod").
  double width = 10.5;
};

/// P(I = i) for i = -range..range (index i + range), where I = round(sum of `secret_weight`
/// uniforms on (-1/2, 1/2)). Relative error below 2^-45 down to the smallest doubles.
/// Weights 1..1024.
std::vector<double> integer_distribution(u32 secret_weight, u32 range);

/// log2 of the probability that some of `coefficients` integers has |I| >= range: 2^-132.7 for
/// h = 32, K = 16, N = 2^16. -infinity where no integer can be that large (range > h / 2).
double log2_overflow_probability(u32 secret_weight, u32 range, u64 coefficients);

/// c0 = (1 / 2 pi)^(1 / 2^r), the amplitude of the fitted cosine.
double mod1_amplitude(u32 double_angles);

/// Chebyshev coefficients T_0..T_degree (odd ones exactly 0) of c0 cos(2 pi width y / 2^r),
/// y = (x - 1/4) / width: least squares weighted by sqrt(P(I)), floor 2^-26 of the largest, over
/// the union of |x - I| <= fit_radius. Throws ParameterError on parameters out of range.
std::vector<double> fit_mod1(const Mod1Params& params);

/// Error of the fit after the double angles against sin(2 pi x) / 2 pi, in exact arithmetic (the
/// rounding of the coefficients to double is in it).
struct FitError {
  double rms;                      ///< over I ~ P and frac uniform on [-fit_radius, fit_radius]
  double mean;                     ///< the same average of the signed error
  double worst;                    ///< over |I| < range and |frac| <= fit_radius
  std::vector<double> by_integer;  ///< worst for |I| = 0..range - 1
};
FitError fit_error(const Mod1Params& params, std::span<const double> coefficients);

/// Coefficients of y, y^3, .. up to y^degree (degree 0, 1, 3, 5 or 7) of the series
/// x = y + (2 pi)^2 y^3 / 6 + ... in y = sin(2 pi x) / 2 pi. Degrees 0 and 1: {1}, no correction.
std::vector<double> arcsine_series(u32 degree);

}  // namespace crenel::circuits
