// Polynomial evaluation: Paterson-Stockmeyer in the power or the Chebyshev basis, depth-optimal,
// with exact scales (BMTH21, PS73).
//
// Every partial result is produced at a prescribed (level, scale): a leaf encodes each coefficient
// at (wanted scale)/(scale of its basis element), so all terms of a sum agree exactly whatever the
// scales of the basis elements are. A node p = q X^(2^k) + r is evaluated unrescaled; q is asked
// for at the scale that makes the product come out right; products stay at three components until
// the sum is complete.
#include "ckks/polynomial.h"

#include <bit>
#include <cmath>
#include <map>
#include <numbers>

#include "ckks/levels.h"

namespace crenel::ckks {

u32 polynomial_depth(u32 degree) { return degree == 0 ? 0 : std::bit_width(degree); }

namespace {

constexpr u32 kMaxFitDegree = 1u << 16;  // the fit takes time quadratic in the degree

}  // namespace

std::vector<double> chebyshev_coefficients(const std::function<double(double)>& f, double a,
                                           double b, u32 degree) {
  if (!(std::isfinite(a) && std::isfinite(b) && a < b))
    throw ParameterError(cat("interval [", a, ", ", b, "], expected a < b"),
                         {{"a", cat(a)}, {"b", cat(b)}});
  if (degree > kMaxFitDegree)
    throw ParameterError(
        cat("Chebyshev fit of degree ", degree, ", expected at most ", kMaxFitDegree),
        {{"degree", cat(degree)}});
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

namespace {

u32 degree_of(std::span<const double> c) {
  u32 degree = static_cast<u32>(c.size());
  while (degree > 1 && c[degree - 1] == 0.0) --degree;
  return degree - 1;
}

class PolynomialEvaluator {
 public:
  PolynomialEvaluator(const Evaluator& ev, const Ciphertext& x, u32 degree, PolynomialBasis basis,
                      u32 precise)
      : ev_(ev), params_(ev.context().params()), basis_(basis), precise_(precise) {
    // About sqrt(degree) baby steps; the rest is reached by giant steps.
    baby_ = 1u << ((std::bit_width(degree) + 1) / 2);
    elements_.emplace(1, ev.state().copy(x));
  }

  Ciphertext evaluate(std::span<const double> c, u32 target_level, double target_scale) {
    const u32 level = target_level + 1;
    Ciphertext out = finish(node(c, level, target_scale * params_.rescale_ratio(level)));
    out.data().meta.scale = target_scale;  // equal up to bookkeeping rounding
    return out;
  }

 private:
  using Split = std::pair<std::vector<double>, std::vector<double>>;

  // Rescale, with the relinearisation when it is due merged in.
  Ciphertext finish(const Ciphertext& a) const {
    return a.components() == 3 ? ev_.relinearise_rescale(a) : ev_.rescale(a);
  }

  /// X^i or T_i, two components, at the highest level possible.
  const Ciphertext& element(u32 i) {
    if (const auto it = elements_.find(i); it != elements_.end()) return it->second;
    const u32 a = std::has_single_bit(i) ? i / 2 : std::bit_floor(i), b = i - a;
    const Ciphertext& xa = element(a);
    const Ciphertext& xb = element(b);
    const u32 level = std::min(xa.level(), xb.level());
    const bool chebyshev = basis_ == PolynomialBasis::chebyshev;
    std::optional<Ciphertext> product;
    if (a == b) {
      product = chebyshev ? double_square(ev_.state(), xa, -1.0) : ev_.square_lazy(xa);
    } else {
      product = ev_.multiply_lazy(at(a, level), at(b, level));
      if (chebyshev) {  // T_(a+b) = 2 T_a T_b - T_|a-b|
        product = ev_.add(*product, *product);
        product = ev_.sub(*product, scaled(a - b, 1.0, level, product->scale()));
      }
    }
    return elements_
        .emplace(i, i <= precise_ ? ev_.rescale(ev_.relinearise(*product)) : finish(*product))
        .first->second;
  }

  /// element(i) at this level, made once.
  const Ciphertext& at(u32 i, u32 level) {
    const Ciphertext& a = element(i);
    if (a.level() == level) return a;
    if (const auto it = lowered_.find({i, level}); it != lowered_.end()) return it->second;
    return lowered_
        .emplace(std::pair(i, level), can_drop_to(params_, a.level(), level)
                                          ? drop_limbs(ev_.state(), a, level)
                                          : ev_.adjust_level(a, level))
        .first->second;
  }

  // c times element(i) at exactly this level and scale, without a rescale.
  Ciphertext scaled(u32 i, double c, u32 level, double scale) {
    const Ciphertext& lowered = at(i, level);
    Ciphertext out = ev_.multiply(lowered, c, scale / lowered.scale());
    out.data().meta.scale = scale;
    return out;
  }

  // Lowest level among the basis elements a leaf would use; the depth of X^i is ceil(log2 i).
  bool leaf_fits(std::span<const double> c, u32 degree, u32 level) {
    if (degree >= baby_ && degree > 1) return false;
    const u32 top = elements_.at(1).level();
    for (u32 i = 2; i <= degree; ++i)
      if (c[i] != 0.0 && top - std::bit_width(i - 1) < level) return false;
    return true;
  }

  Ciphertext leaf(std::span<const double> c, u32 degree, u32 level, double scale) {
    std::vector<const Ciphertext*> x;
    std::vector<double> factors;
    for (u32 i = 1; i <= degree; ++i) {
      if (c[i] == 0.0) continue;
      x.push_back(&at(i, level));
      factors.push_back(c[i]);
    }
    if (x.empty()) x.push_back(&at(1, level)), factors.push_back(0.0);
    return linear_combination(ev_.state(), x, factors, c[0], scale);
  }

  Split split(std::span<const double> c, u32 degree, u32 half) const {
    std::vector<double> q(c.begin() + half, c.begin() + degree + 1), r(c.begin(), c.begin() + half);
    if (basis_ == PolynomialBasis::chebyshev)  // T_(half+i) = 2 T_half T_i - T_(half-i)
      for (u32 i = 1; i < q.size(); ++i) {
        r[half - i] -= q[i];
        q[i] *= 2.0;
      }
    return {std::move(q), std::move(r)};
  }

  /// p at (level, scale), unrescaled; two or three components.
  Ciphertext node(std::span<const double> c, u32 level, double scale) {
    const u32 degree = degree_of(c);
    if (leaf_fits(c, degree, level)) return leaf(c, degree, level, scale);
    const u32 half = std::bit_floor(degree);
    const auto [q, r] = split(c, degree, half);
    const Ciphertext& giant = at(half, level);
    Ciphertext high =
        finish(node(q, level + 1, scale / giant.scale() * params_.rescale_ratio(level + 1)));
    high.data().meta.scale = scale / giant.scale();  // equal up to bookkeeping rounding
    Ciphertext product = ev_.multiply_lazy(high, giant);
    product.data().meta.scale = scale;
    bool remainder = false;
    for (double v : r) remainder |= v != 0.0;
    return remainder ? ev_.add(product, node(r, level, scale)) : std::move(product);
  }

  const Evaluator& ev_;
  const Params& params_;
  PolynomialBasis basis_;
  u32 precise_;
  u32 baby_;
  std::map<u32, Ciphertext> elements_;  // maps: references stay valid while others are added
  std::map<std::pair<u32, u32>, Ciphertext> lowered_;  // by element and level
};

}  // namespace

Ciphertext evaluate_polynomial(const Evaluator& ev, const Ciphertext& x, std::span<const double> c,
                               PolynomialBasis basis, u32 level, double scale, u32 precise) {
  return PolynomialEvaluator(ev, x, degree_of(c), basis, precise).evaluate(c, level, scale);
}

Ciphertext Evaluator::polynomial(const Ciphertext& x, std::span<const double> coefficients,
                                 PolynomialBasis basis, double a, double b) const {
  const State& s = *state_;
  s.check_components(x, 2, "polynomial");
  if (coefficients.empty())
    throw ParameterError("polynomial without coefficients, expected at least one",
                         {{"count", "0"}});
  for (std::size_t i = 0; i < coefficients.size(); ++i)
    if (!std::isfinite(coefficients[i]))
      throw ParameterError(
          cat("coefficient ", i, " is infinite or no number, expected a finite number"),
          {{"index", cat(i)}});
  if (basis == PolynomialBasis::power && (a != -1.0 || b != 1.0))
    throw ParameterError(cat("interval [", a, ", ", b,
                             "] with the power basis, which has none; expected "
                             "the Chebyshev basis"),
                         {{"a", cat(a)}, {"b", cat(b)}});
  const bool map_interval = basis == PolynomialBasis::chebyshev && (a != -1.0 || b != 1.0);
  if (map_interval && !(std::isfinite(a) && std::isfinite(b) && a < b))
    throw ParameterError(cat("interval [", a, ", ", b, "], expected a < b"),
                         {{"a", cat(a)}, {"b", cat(b)}});
  const u32 degree = degree_of(coefficients);
  if (degree == 0) return add(multiply_integer(x, 0), std::complex<double>(coefficients[0]));
  const u32 depth = polynomial_depth(degree) + (map_interval ? 1 : 0);
  if (x.level() < depth)
    throw StateError(cat("polynomial of degree ", degree, " needs ", depth,
                         " levels, ciphertext is at level ", x.level()),
                     {{"level", cat(x.level())}, {"expected", cat(">= ", depth)}});
  if (degree > 1) s.require_relinearisation();
  s.constant_scale(x);  // refuses an unrescaled product before any work
  const u32 target = x.level() - depth;
  const double scale = s.params().scale(target);
  if (!map_interval) return evaluate_polynomial(*this, x, coefficients, basis, target, scale);
  const Ciphertext mapped =
      add(rescale(multiply(x, 2.0 / (b - a))), std::complex<double>(-(a + b) / (b - a)));
  return evaluate_polynomial(*this, mapped, coefficients, basis, target, scale);
}

}  // namespace crenel::ckks
