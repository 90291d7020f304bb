// Polynomials: coefficients, refusals, and the evaluation of ckks/paterson_stockmeyer.h.
#include "ckks/polynomial.h"

#include <bit>
#include <cmath>
#include <numbers>

#include "ckks/magnitude.h"
#include "ckks/observer.h"

namespace crenel::ckks {

u32 polynomial_depth(u32 degree) { return degree == 0 ? 0 : std::bit_width(degree); }

namespace {

constexpr u32 kMaxFitDegree = 1u << 16;  // the fit takes time quadratic in the degree

}  // namespace

std::vector<double> chebyshev_coefficients(const std::function<double(double)>& f, double a,
                                           double b, u32 degree) {
  if (!(std::isfinite(a) && std::isfinite(b) && a < b))
    throw ParameterError(cat("interval [", a, ", ", b, "], expected a < b"), {{"a", a}, {"b", b}});
  if (degree > kMaxFitDegree)
    throw ParameterError(
        cat("Chebyshev fit of degree ", degree, ", expected at most ", kMaxFitDegree),
        {{"degree", degree}});
  const u32 n = degree + 1;
  std::vector<double> values(n), coefficients(n);
  for (u32 k = 0; k < n; ++k) {
    const double node = std::cos(std::numbers::pi * (k + 0.5) / n);
    values[k] = f(0.5 * (b - a) * node + 0.5 * (a + b));
  }
  for (u32 j = 0; j < n; ++j) {
    double sum = 0.0;
    for (u32 k = 0; k < n; ++k) sum += values[k] * std::cos(std::numbers::pi * j * (k + 0.5) / n);
    coefficients[j] = sum * (j == 0 ? 1.0 : 2.0) / n;
  }
  return coefficients;
}

void CiphertextOps::limit_chebyshev(Ciphertext& a, const Ciphertext& x, u32 i) const {
  double& bound = a.data().meta.bound;
  bound = std::min(bound, magnitude::chebyshev(x.bound(), x.metadata().real, i));
}

Ciphertext evaluate_polynomial(const Evaluator& ev, const Ciphertext& x, std::span<const double> c,
                               PolynomialBasis basis, u32 level, double scale) {
  return PolynomialEvaluator<CiphertextOps>({ev}, x, degree_of(c), basis).evaluate(c, level, scale);
}

PolynomialTask polynomial_task(const Params& params, u32 level,
                               std::span<const double> coefficients, PolynomialBasis basis,
                               double a, double b) {
  if (coefficients.empty())
    throw ParameterError("polynomial without coefficients, expected at least one", {{"count", 0}});
  for (std::size_t i = 0; i < coefficients.size(); ++i)
    if (!std::isfinite(coefficients[i]))
      throw ParameterError(
          cat("coefficient ", i, " is infinite or no number, expected a finite number"),
          {{"index", i}});
  if (basis == PolynomialBasis::power && (a != -1.0 || b != 1.0))
    throw ParameterError(cat("interval [", a, ", ", b,
                             "] with the power basis, which has none; expected "
                             "the Chebyshev basis"),
                         {{"a", a}, {"b", b}});
  const bool map_interval = basis == PolynomialBasis::chebyshev && (a != -1.0 || b != 1.0);
  if (map_interval && !(std::isfinite(a) && std::isfinite(b) && a < b))
    throw ParameterError(cat("interval [", a, ", ", b, "], expected a < b"), {{"a", a}, {"b", b}});
  const u32 degree = degree_of(coefficients);
  const u32 depth = polynomial_depth(degree) + (degree > 0 && map_interval ? 1 : 0);
  if (level < depth)
    refuse_level(params, "polynomial", level, depth, {{"degree", degree}},
                 cat(" (degree ", degree, " takes ", depth, " levels)"));
  if (degree > 0 && map_interval) {
    // The factor 2 / (b - a) is rounded at this scale, and its error grows with x.
    const double factor = 2.0 / (b - a) * constant_scale(params, level, params.scale(level));
    if (!(factor >= 0x1p10))
      throw ParameterError(
          cat("interval [", a, ", ", b, "] is too wide: as a constant at level ", level,
              " its map to [-1, 1] would keep fewer than 10 bits; scale the inputs down before, by "
              "several products if need be"),
          {{"a", a}, {"b", b}, {"level", level}});
  }
  return {degree, map_interval, level - depth};
}

Ciphertext Evaluator::polynomial(const Ciphertext& x, std::span<const double> coefficients,
                                 PolynomialBasis basis, double a, double b) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "polynomial",
        [&](const auto& on, const auto& y) { return on.polynomial(y, coefficients, basis, a, b); },
        x);
  s.check_components(x, 2, "polynomial");
  const PolynomialTask task = polynomial_task(s.params(), x.level(), coefficients, basis, a, b);
  if (task.degree == 0) return add(multiply_integer(x, 0), std::complex<double>(coefficients[0]));
  if (task.degree > 1) s.require_relinearisation(x.level() - u32(task.map_interval), "polynomial");
  if (magnitude::known(x.bound())) {  // refuses before the first of many operations
    const MagnitudeModel model(s.params(), "polynomial");
    ckks::polynomial(MagnitudeOps{model}, Magnitude{x.metadata()}, coefficients, basis, a, b, task);
  }
  return ckks::polynomial(CiphertextOps{*this}, x, coefficients, basis, a, b, task);
}

}  // namespace crenel::ckks
