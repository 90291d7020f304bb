// Polynomial evaluation: Paterson-Stockmeyer in the power or the Chebyshev basis, depth-optimal,
// with exact scales (BMTH21, PS73).
//
// Every partial result is produced at a prescribed (level, scale): a leaf encodes each coefficient
// at (wanted scale)/(scale of its basis element), so all terms of a sum agree exactly whatever the
// scales of the basis elements are. A node p = q X^(2^k) + r is evaluated unrescaled; q is asked
// for at the scale that makes the product come out right; products stay at three components until
// the sum is complete.
//
// `Ops` says what it computes on: Value with level() and scale(), `ev` with Evaluator's operations
// on it, and the few that are not of the public interface. CiphertextOps (ckks/polynomial.h) is the
// evaluation, ModelOps (ckks/error_model.cpp) its errors: one algorithm, so that the model is of
// what runs.
#pragma once

#include <bit>
#include <cmath>
#include <map>

#include "ckks/levels.h"

namespace crenel::ckks {

inline u32 degree_of(std::span<const double> c) {
  u32 degree = static_cast<u32>(c.size());
  while (degree > 1 && c[degree - 1] == 0.0) --degree;
  return degree - 1;
}

/// Operations that read operands of higher levels as they lie, and do not make a sum of products
/// before all of it is known: of ciphertexts.
template <class Ops>
concept FoldedOps = requires(const Ops& ops) { ops.folded; };

/// An unrescaled sum, of two or three components.
template <class Ops>
struct SumOf {
  using Type = typename Ops::Value;
};
template <FoldedOps Ops>
struct SumOf<Ops> {
  using Type = typename Ops::Sum;
};

template <class Ops>
class PolynomialEvaluator {
 public:
  using Value = typename Ops::Value;
  using Sum = typename SumOf<Ops>::Type;

  PolynomialEvaluator(const Ops& ops, Value x, u32 degree, PolynomialBasis basis)
      : ops_(ops), ev_(ops.ev), params_(ops.params()), basis_(basis) {
    // About sqrt(degree) baby steps; the rest is reached by giant steps.
    baby_ = 1u << ((std::bit_width(degree) + 1) / 2);
    elements_.emplace(1, std::move(x));
  }

  Value evaluate(std::span<const double> c, u32 target_level, double target_scale) {
    const u32 level = target_level + 1;
    Value out = finish(node(c, level, target_scale * params_.rescale_ratio(level)));
    ops_.set_scale(out, target_scale);  // equal up to bookkeeping rounding
    return out;
  }

 private:
  static constexpr double kLargest = 0x1p110;  // constants are integers below 2^120

  using Split = std::pair<std::vector<double>, std::vector<double>>;

  // Rescale, with the relinearisation when it is due merged in.
  Value finish(const Sum& a) const {
    if constexpr (FoldedOps<Ops>)
      return ops_.finish(a);
    else
      return ops_.components(a) == 3 ? ev_.relinearise_rescale(a) : ev_.rescale(a);
  }

  /// X^i or T_i, two components, at the highest level possible.
  const Value& element(u32 i) {
    if (const auto it = elements_.find(i); it != elements_.end()) return it->second;
    const u32 a = std::has_single_bit(i) ? i / 2 : std::bit_floor(i), b = i - a;
    const Value& xa = element(a);
    const Value& xb = element(b);
    const u32 level = std::min(xa.level(), xb.level());
    const bool chebyshev = basis_ == PolynomialBasis::chebyshev;
    Value made = finish(a == b ? square(xa, chebyshev) : element_product(a, b, level, chebyshev));
    if (chebyshev) ops_.limit_chebyshev(made, elements_.at(1), i);
    return elements_.emplace(i, std::move(made)).first->second;
  }

  /// X^(a+b), or T_(a+b) = 2 T_a T_b - T_(a-b), unrescaled; a > b.
  Sum element_product(u32 a, u32 b, u32 level, bool chebyshev) {
    if (!chebyshev) return multiply_lazy(at(a, level), at(b, level), level);
    if constexpr (FoldedOps<Ops>)
      if (ops_.folded)
        return ops_.chebyshev_product(at(a, level), at(b, level), at(a - b, level), level);
    Value twice = ev_.multiply_lazy(at(a, level), at(b, level));
    twice = ev_.add(twice, twice);
    return ev_.sub(twice, scaled(a - b, 1.0, level, twice.scale()));
  }

  bool folded() const {
    if constexpr (FoldedOps<Ops>) return ops_.folded;
    return false;
  }
  /// x^2, or 2 x^2 - 1.
  Sum square(const Value& x, bool chebyshev) const {
    if constexpr (FoldedOps<Ops>)
      if (ops_.folded) return chebyshev ? ops_.doubled_square(x, -1.0) : ops_.square(x);
    return chebyshev ? ops_.double_square(x, -1.0) : ev_.square_lazy(x);
  }
  Sum multiply_lazy(const Value& a, const Value& b, u32 level) const {
    if constexpr (FoldedOps<Ops>)
      if (ops_.folded) return ops_.product(a, b, level);
    return ev_.multiply_lazy(a, b);
  }
  /// A product that keeps a.
  Sum multiply_lazy(Value&& a, const Value& b, u32 level) const {
    if constexpr (FoldedOps<Ops>)
      if (ops_.folded) return ops_.product(std::move(a), b, level);
    return ev_.multiply_lazy(a, b);
  }

  /// element(i) at this level, made once; folded, at a level that limbs can be dropped from.
  const Value& at(u32 i, u32 level) {
    const Value& a = element(i);
    if (a.level() == level || (folded() && can_drop_to(params_, a.level(), level))) return a;
    if (const auto it = lowered_.find({i, level}); it != lowered_.end()) return it->second;
    return lowered_
        .emplace(std::pair(i, level), can_drop_to(params_, a.level(), level)
                                          ? ops_.drop(a, level)
                                          : ev_.adjust_level(a, level))
        .first->second;
  }

  // c times element(i) at exactly this level and scale, without a rescale.
  Value scaled(u32 i, double c, u32 level, double scale) {
    const Value& lowered = at(i, level);
    Value out = ev_.multiply(lowered, c, scale / lowered.scale());
    ops_.set_scale(out, scale);
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

  /// Elements that a leaf uses and `at` would have to rescale first.
  u32 unready(std::span<const double> c, u32 degree, u32 level) {
    u32 count = 0;
    for (u32 i = 1; i <= degree; ++i)
      count += c[i] != 0.0 && !lowered_.contains({i, level}) &&
               !can_drop_to(params_, element(i).level(), level);
    return count;
  }

  /// The level at which a leaf's sum is made.
  u32 leaf_level(std::span<const double> c, u32 degree, u32 level, double scale) {
    // Elements come down to the leaf's level one by one, or their sum does, times the moduli on the
    // way: whichever rescales less. Constants must stay below kLargest.
    u32 highest = elements_.at(1).level();
    double largest = 1.0;
    for (u32 i = 1; i <= degree; ++i) {
      largest = std::max(largest, std::abs(c[i]));
      if (c[i] != 0.0) highest = std::min(highest, element(i).level());
    }
    u32 from = level;
    double wanted = scale;
    while (from < highest &&
           largest * wanted * params_.rescale_ratio(from + 1) < kLargest * params_.scale(from + 1))
      wanted *= params_.rescale_ratio(++from);
    const bool there =
        from == level || unready(c, degree, from) + from - level >= unready(c, degree, level);
    return there ? level : from;
  }

  Value leaf(std::span<const double> c, u32 degree, u32 level, double scale) {
    const u32 from = leaf_level(c, degree, level, scale);
    if (from == level) return combination(c, degree, level, scale, c[0]);
    double wanted = scale;
    for (u32 l = level + 1; l <= from; ++l) wanted *= params_.rescale_ratio(l);
    Value sum = combination(c, degree, from, wanted, 0.0);
    while (sum.level() > level) sum = ev_.rescale(sum);
    ops_.set_scale(sum, scale);  // equal up to bookkeeping rounding
    return c[0] == 0.0 ? std::move(sum) : ev_.add(sum, std::complex<double>(c[0]));
  }

  struct Terms {
    std::vector<const Value*> x;
    std::vector<double> factors;
  };
  Terms terms(std::span<const double> c, u32 degree, u32 level) {
    Terms t;
    for (u32 i = 1; i <= degree; ++i) {
      if (c[i] == 0.0) continue;
      t.x.push_back(&at(i, level));
      t.factors.push_back(c[i]);
    }
    if (t.x.empty()) t.x.push_back(&at(1, level)), t.factors.push_back(0.0);
    return t;
  }

  Value combination(std::span<const double> c, u32 degree, u32 level, double scale,
                    double constant) {
    const Terms t = terms(c, degree, level);
    if constexpr (FoldedOps<Ops>)
      if (ops_.folded) return ops_.linear_combination(t.x, t.factors, constant, scale, level);
    return ops_.linear_combination(t.x, t.factors, constant, scale);
  }

  /// product += r, of three components and unrescaled.
  void add_remainder(Sum& product, std::span<const double> r, u32 level, double scale) {
    if constexpr (FoldedOps<Ops>) {
      if (ops_.folded) {
        const u32 degree = degree_of(r);
        if (leaf_fits(r, degree, level) && leaf_level(r, degree, level, scale) == level) {
          const Terms t = terms(r, degree, level);
          ops_.add_combination(product, t.x, t.factors, r[0]);
        } else {
          ops_.add_to(product, node(r, level, scale));
        }
        return;
      }
      product = ev_.add(std::get<Value>(product), std::get<Value>(node(r, level, scale)));
    } else {
      product = ev_.add(product, node(r, level, scale));
    }
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
  Sum node(std::span<const double> c, u32 level, double scale) {
    const u32 degree = degree_of(c);
    if (leaf_fits(c, degree, level)) return leaf(c, degree, level, scale);
    const u32 half = std::bit_floor(degree);
    const auto [q, r] = split(c, degree, half);
    const Value& giant = at(half, level);
    Value high =
        finish(node(q, level + 1, scale / giant.scale() * params_.rescale_ratio(level + 1)));
    ops_.set_scale(high, scale / giant.scale());  // equal up to bookkeeping rounding
    Sum product = multiply_lazy(std::move(high), giant, level);
    ops_.set_scale(product, scale);
    bool remainder = false;
    for (double v : r) remainder |= v != 0.0;
    if (remainder) add_remainder(product, r, level, scale);
    return product;
  }

  Ops ops_;
  const typename Ops::Operations& ev_;
  const Params& params_;
  PolynomialBasis basis_;
  u32 baby_;
  std::map<u32, Value> elements_;  // maps: references stay valid while others are added
  std::map<std::pair<u32, u32>, Value> lowered_;  // by element and level
};

/// A polynomial's coefficients, interval and depth, refused as Evaluator::polynomial states it.
struct PolynomialTask {
  u32 degree;
  bool map_interval;  ///< from [a, b] to [-1, 1] first, which takes a level
  u32 target;         ///< level of the result
};
PolynomialTask polynomial_task(const Params& params, u32 level,
                               std::span<const double> coefficients, PolynomialBasis basis,
                               double a, double b);

/// Evaluator::polynomial, of degree 1 and more.
template <class Ops>
typename Ops::Value polynomial(const Ops& ops, const typename Ops::Value& x,
                               std::span<const double> coefficients, PolynomialBasis basis,
                               double a, double b, const PolynomialTask& task) {
  const double scale = ops.params().scale(task.target);
  constant_scale(ops.params(), x.level(), x.scale());  // refuses an unrescaled product
  const auto run = [&](typename Ops::Value y) {
    return PolynomialEvaluator<Ops>(ops, std::move(y), task.degree, basis)
        .evaluate(coefficients, task.target, scale);
  };
  if (!task.map_interval) return run(ops.copy(x));
  return run(ops.ev.add(ops.ev.rescale(ops.ev.multiply(x, 2.0 / (b - a))),
                        std::complex<double>(-(a + b) / (b - a))));
}

}  // namespace crenel::ckks
