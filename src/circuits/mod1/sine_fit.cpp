#include "circuits/mod1/sine_fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "crenel/core/error.h"

namespace crenel::circuits {
namespace {

// The fit's error is near 2^-49 of its largest values before the double angles amplify it: too
// close to the precision of double for a least-squares solution, hence extended precision
// throughout.
using Real = long double;
constexpr Real kPi = std::numbers::pi_v<Real>;

constexpr double kMaxLogBasis = 36.0;
constexpr u32 kMaxWeight = 1024, kMaxRange = 512, kMaxDoubleAngles = 16;
/// Nodes per integer. The intervals are so short that the error is nearly linear on each.
constexpr u32 kNodes = 6;
/// Weights below this would leave the rarest integers without any control.
constexpr Real kWeightFloor = 0x1p-26L;

void require(bool ok, const char* name, double value, const char* expected) {
  if (!ok)
    throw ParameterError(cat("EvalMod: ", name, " is ", value, ", expected ", expected),
                         {{name, value}, {"expected", expected}});
}

void check(const Mod1Params& p) {
  require(p.range >= 2 && p.range <= kMaxRange, "range", p.range, "2..512");
  // Fewer even terms than pairs of integers +-I cannot meet all intervals; more than integers are
  // not determined by intervals this short.
  require(p.degree % 2 == 0 && p.degree >= 2 * (p.range - 1) && p.degree <= 4 * (p.range - 1),
          "degree", p.degree, "an even number, 2 (range - 1) to 4 (range - 1)");
  // T_degree at the outermost integer: beyond, neither the fit nor its evaluation keeps its digits.
  require(p.width > 0 && p.degree * std::acosh(std::max(1.0, p.range / p.width)) < kMaxLogBasis,
          "width", p.width, "most of the range, by the degree");
  require(p.double_angles <= kMaxDoubleAngles, "double_angles", p.double_angles, "0..16");
  require(p.fit_radius > 0 && p.fit_radius <= 0.25, "fit_radius", p.fit_radius, "above 0, to 1/4");
}

// P(round(S) = i) for a sum S of h uniforms is the density of h + 1 of them at i: the B-spline of
// h + 1 unit boxes at x = i + (h + 1) / 2. The recurrence
//   M_n(x) = (x M_{n-1}(x) + (n - x) M_{n-1}(x - 1)) / (n - 1)
// adds positive terms only, so every value has full relative precision, the tails too; the
// alternating sum of Irwin and Hall has lost all digits in the middle from h = 50 on.
// Entry k: x = k (h odd) or k + 1/2 (h even), that is i = k - (h + 1) / 2 rounded down.
std::vector<Real> spline(u32 weight) {
  require(weight >= 1 && weight <= kMaxWeight, "secret_weight", weight, "1..1024");
  const u32 boxes = weight + 1;
  const Real offset = boxes % 2 == 0 ? 0.0L : 0.5L;
  std::vector<Real> m(boxes, 0.0L);
  m[0] = 1.0L;
  for (u32 n = 2; n <= boxes; ++n)
    for (u32 k = n; k-- > 0;) {
      const Real x = offset + k, before = k > 0 ? m[k - 1] : 0.0L;
      m[k] = (x * m[k] + (n - x) * before) / (n - 1);
    }
  return m;
}

Real probability(const std::vector<Real>& spline, i64 i) {
  const i64 k = i + static_cast<i64>(spline.size() / 2);
  return k >= 0 && k < static_cast<i64>(spline.size()) ? spline[static_cast<u64>(k)] : 0.0L;
}

Real amplitude(u32 double_angles) {
  return std::pow(2 * kPi, -std::ldexp(1.0L, -int(double_angles)));
}

/// T_0(y), T_2(y), .. T_{2 (count - 1)}(y), as T_k(2 y^2 - 1).
void even_chebyshev(Real y, std::span<Real> out) {
  const Real z = 2 * y * y - 1;
  out[0] = 1;
  if (out.size() > 1) out[1] = z;
  for (u64 k = 2; k < out.size(); ++k) out[k] = 2 * z * out[k - 1] - out[k - 2];
}

/// Householder least squares; `a` row by row, `columns` + 1 numbers a row, the last is the target.
std::vector<Real> least_squares(std::vector<Real> a, u64 columns) {
  const u64 stride = columns + 1, rows = a.size() / stride;
  for (u64 k = 0; k < columns; ++k) {
    Real norm = 0;
    for (u64 i = k; i < rows; ++i) norm += a[i * stride + k] * a[i * stride + k];
    norm = std::copysign(std::sqrt(norm), a[k * stride + k]);
    const Real head = a[k * stride + k] + norm;  // the reflector; its tail is the column's
    for (u64 j = k + 1; j < stride; ++j) {
      Real dot = head * a[k * stride + j];
      for (u64 i = k + 1; i < rows; ++i) dot += a[i * stride + k] * a[i * stride + j];
      dot /= norm * head;
      a[k * stride + j] -= dot * head;
      for (u64 i = k + 1; i < rows; ++i) a[i * stride + j] -= dot * a[i * stride + k];
    }
    a[k * stride + k] = -norm;
  }
  std::vector<Real> x(columns);
  for (u64 k = columns; k-- > 0;) {
    Real sum = a[k * stride + columns];
    for (u64 j = k + 1; j < columns; ++j) sum -= a[k * stride + j] * x[j];
    x[k] = sum / a[k * stride + k];
  }
  return x;
}

/// Error of the approximate sine at x = i + frac.
Real error_at(const Mod1Params& p, std::span<const double> coefficients, i64 i, Real frac) {
  std::vector<Real> basis(p.degree / 2 + 1);
  even_chebyshev((Real(i) + frac - 0.25L) / p.width, basis);
  Real v = 0;
  for (u64 k = 0; k < basis.size(); ++k) v += coefficients[2 * k] * basis[k];
  Real power = amplitude(p.double_angles);
  for (u32 r = 0; r < p.double_angles; ++r) {
    power *= power;
    v = 2 * v * v - power;
  }
  return v - std::sin(2 * kPi * frac) / (2 * kPi);
}

}  // namespace

std::vector<double> integer_distribution(u32 secret_weight, u32 range) {
  const auto m = spline(secret_weight);
  std::vector<double> out;
  for (i64 i = -i64{range}; i <= i64{range}; ++i)
    out.push_back(static_cast<double>(probability(m, i)));
  return out;
}

double log2_overflow_probability(u32 secret_weight, u32 range, u64 coefficients) {
  const auto m = spline(secret_weight);
  Real tail = 0;  // smallest terms first
  for (i64 i = i64{secret_weight} + 1; i >= i64{range}; --i)
    tail += probability(m, i) * (i ? 2 : 1);
  if (tail <= 0) return -std::numeric_limits<double>::infinity();
  if (tail >= 1 - 0x1p-60L) return 0.0;
  const Real some = -std::expm1(static_cast<Real>(coefficients) * std::log1p(-tail));
  return static_cast<double>(std::log2(some));
}

double mod1_amplitude(u32 double_angles) { return static_cast<double>(amplitude(double_angles)); }

std::vector<double> fit_mod1(const Mod1Params& params) {
  check(params);
  const auto m = spline(params.secret_weight);
  const Real c0 = amplitude(params.double_angles);
  const u64 columns = params.degree / 2 + 1;
  std::vector<Real> system;
  std::vector<Real> row(columns);
  // Heaviest rows first: reflections by rows of very different size are stable in this order.
  for (i64 distance = 0; distance < i64{params.range}; ++distance)
    for (i64 i : {distance, -distance}) {
      if (distance == 0 && !system.empty()) continue;
      const Real weight = std::max(kWeightFloor, std::sqrt(probability(m, i) / probability(m, 0)));
      for (u32 node = 0; node < kNodes; ++node) {
        const Real u =
            Real(i) - 0.25L + params.fit_radius * std::cos(kPi * (2 * node + 1) / (2 * kNodes));
        even_chebyshev(u / params.width, row);
        for (const Real t : row) system.push_back(weight * t);
        system.push_back(weight * c0 *
                         std::cos(2 * kPi * std::ldexp(u, -int(params.double_angles))));
      }
    }
  const auto even = least_squares(std::move(system), columns);
  std::vector<double> out(params.degree + 1, 0.0);
  for (u64 k = 0; k < columns; ++k) out[2 * k] = static_cast<double>(even[k]);
  return out;
}

FitError fit_error(const Mod1Params& params, std::span<const double> coefficients) {
  check(params);
  require(coefficients.size() == params.degree + 1, "coefficients",
          static_cast<double>(coefficients.size()), "degree + 1 of them");
  const auto m = spline(params.secret_weight);
  constexpr int kSteps = 8;  // Simpson's rule over the interval, ends included
  FitError out{0, 0, 0, std::vector<double>(params.range, 0.0)};
  Real square = 0, mean = 0;
  for (i64 i = -i64{params.range} + 1; i < i64{params.range}; ++i) {
    double& worst = out.by_integer[static_cast<u64>(i < 0 ? -i : i)];
    for (int s = 0; s <= kSteps; ++s) {
      const Real frac = params.fit_radius * (2.0L * s / kSteps - 1);
      const Real e = error_at(params, coefficients, i, frac);
      const Real simpson = (s == 0 || s == kSteps ? 1 : s % 2 ? 4 : 2) / (3.0L * kSteps);
      square += probability(m, i) * simpson * e * e;
      mean += probability(m, i) * simpson * e;
      worst = std::max(worst, static_cast<double>(std::abs(e)));
    }
    out.worst = std::max(out.worst, worst);
  }
  out.rms = static_cast<double>(std::sqrt(square));
  out.mean = static_cast<double>(mean);
  return out;
}

std::vector<double> arcsine_series(u32 degree) {
  require(degree == 0 || (degree % 2 == 1 && degree <= 7), "arcsine_degree", degree,
          "0, 1, 3, 5 or 7");
  // arcsin(s) = sum binom(2k, k) / (4^k (2k + 1)) s^(2k + 1), at s = 2 pi y, divided by 2 pi.
  std::vector<double> out{1.0};
  Real central = 1;  // binom(2k, k) (2 pi)^(2k) / 4^k
  for (u32 k = 1; 2 * k + 1 <= degree; ++k) {
    central *= (2.0L * k - 1) / (2.0L * k) * 4 * kPi * kPi;
    out.push_back(static_cast<double>(central / (2 * k + 1)));
  }
  return out;
}

}  // namespace crenel::circuits
