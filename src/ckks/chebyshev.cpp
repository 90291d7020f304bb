#include "crenel/ckks/chebyshev.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "crenel/core/error.h"

namespace crenel::ckks {
namespace {

// Points at which the error of a fit is measured, at least.
constexpr u32 kPoints = 2048, kPointsPerDegree = 16;

double finite_value(const std::function<double(double)>& f, double x) {
  const double y = f(x);
  if (!std::isfinite(y))
    throw ParameterError(cat("the function at ", x, " is ", y, ", expected a finite number"),
                         {{"x", x}});
  return y;
}

}  // namespace

ChebyshevFit::ChebyshevFit(const std::function<double(double)>& f, double a, double b, u32 degree)
    : coefficients_(chebyshev_coefficients(f, a, b, degree)), a_(a), b_(b) {
  if (!std::all_of(coefficients_.begin(), coefficients_.end(),
                   [](double c) { return std::isfinite(c); }))
    throw ParameterError(cat("the function has values on [", a, ", ", b, "] that are not finite"),
                         {{"a", a}, {"b", b}});
  // The extrema of a Chebyshev polynomial of high degree: both ends, and dense near them, where the
  // error of an interpolation oscillates fastest.
  const u32 count = std::max(kPoints, kPointsPerDegree * (degree + 1));
  for (u32 k = 0; k <= count; ++k) {
    const double node = std::cos(std::numbers::pi * k / count);
    const double x = std::clamp(0.5 * (a + b) - 0.5 * (b - a) * node, a, b);
    error_ = std::max(error_, std::abs(clear(x) - finite_value(f, x)));
  }
}

u32 ChebyshevFit::degree() const {
  std::size_t used = coefficients_.size();
  while (used > 1 && coefficients_[used - 1] == 0.0) --used;
  return static_cast<u32>(used - 1);
}

u32 ChebyshevFit::depth() const {
  const bool mapped = degree() > 0 && (a_ != -1.0 || b_ != 1.0);
  return polynomial_depth(degree()) + (mapped ? 1 : 0);
}

// Clenshaw's recurrence.
double ChebyshevFit::clear(double x) const {
  const double t = (2.0 * x - a_ - b_) / (b_ - a_);
  double next = 0.0, after = 0.0;
  for (std::size_t k = coefficients_.size() - 1; k > 0; --k) {
    const double value = coefficients_[k] + 2.0 * t * next - after;
    after = next;
    next = value;
  }
  return coefficients_[0] + t * next - after;
}

Ciphertext ChebyshevFit::operator()(const Evaluator& evaluator, const Ciphertext& x) const {
  return evaluator.polynomial(x, coefficients_, PolynomialBasis::chebyshev, a_, b_);
}

Operand ChebyshevFit::operator()(const Operand& x) const {
  return x.polynomial(coefficients_, PolynomialBasis::chebyshev, a_, b_);
}

}  // namespace crenel::ckks
