// Sums of products with constants, and what polynomials fold into their neighbours: limbs of
// operands at higher levels are read where they lie, and sums are made in place. The same bits as
// the compositions of the evaluator's operations.
#include <cmath>

#include "ckks/encode.h"
#include "ckks/magnitude.h"
#include "ckks/polynomial.h"

namespace crenel::ckks {
namespace {

// As if limbs had been dropped (drop_limbs).
Metadata metadata_at(const Evaluator::State& s, const Ciphertext& a, u32 level) {
  Metadata meta = a.metadata();
  if (meta.level == level) return meta;
  meta.level = level;
  magnitude::expect_fits(s.params(), meta, "adjust_level");
  return meta;
}

rlwe::ConstView view_at(const Evaluator::State& s, const Ciphertext& a, u32 level) {
  const rlwe::ConstView v = a.data().poly.view();
  return a.level() == level ? v : v.restrict_to(s.ring().window(level));
}

struct Sum {
  std::vector<rlwe::ConstView> terms;
  std::vector<rlwe::Scalars> scalars;
  Metadata meta;
};

Sum sum_of(const Evaluator::State& s, std::span<const Ciphertext* const> x,
           std::span<const double> c, double constant, double scale, u32 level) {
  Sum sum;
  sum.meta = metadata_at(s, *x[0], level);
  sum.meta.scale = scale;
  double bound = std::abs(constant);
  for (std::size_t k = 0; k < x.size(); ++k) {
    s.check_components(*x[k], x[0]->components(), "linear combination");
    const Metadata meta = metadata_at(s, *x[k], level);
    check_metadata(sum.meta, meta, false);
    sum.meta.real = sum.meta.real && meta.real;
    bound = magnitude::sum(bound, magnitude::scaled(meta.bound, std::abs(c[k])));
    sum.scalars.push_back(constant_scalars(s.context.state(), c[k], scale / meta.scale, level));
    sum.terms.push_back(view_at(s, *x[k], level));
  }
  sum.meta = magnitude::bounded(s.params(), sum.meta, bound, "linear combination");
  return sum;
}

// Into `to`, which may be one of the terms: the constant is added to the first component.
void combine(const Evaluator::State& s, const rlwe::View& to, const Sum& sum, double constant) {
  const u32 components = to.shape.components;
  if (constant == 0.0) {
    s.kernels().linear_combination(*s.stream, to, sum.terms, sum.scalars, nullptr);
    return;
  }
  const auto part = [&](u32 first, u32 count, const rlwe::Scalars* added) {
    std::vector<rlwe::ConstView> terms;
    for (const auto& v : sum.terms) terms.push_back(v.components(first, count));
    s.kernels().linear_combination(*s.stream, to.components(first, count), terms, sum.scalars,
                                   added);
  };
  const rlwe::Scalars added =
      constant_scalars(s.context.state(), constant, sum.meta.scale, sum.meta.level);
  part(0, 1, &added);
  part(1, components - 1, nullptr);
}

}  // namespace

Ciphertext linear_combination(const Evaluator::State& s, std::span<const Ciphertext* const> x,
                              std::span<const double> c, double constant, double scale) {
  for (const Ciphertext* other : x) s.check_pair(*x[0], *other, false);
  const Sum sum = sum_of(s, x, c, constant, scale, x[0]->level());
  auto out = s.poly(x[0]->components(), x[0]->batch(), x[0]->level());
  combine(s, out.view(), sum, constant);
  return s.wrap(std::move(out), sum.meta);
}

Ciphertext add_constant(const Evaluator::State& s, Ciphertext a, double constant) {
  Metadata& meta = a.data().meta;
  meta =
      magnitude::bounded(s.params(), meta, magnitude::sum(meta.bound, std::abs(constant)), "add");
  const rlwe::View first = a.data().poly.view().components(0, 1);
  s.kernels().add_scalar(*s.stream, first, first,
                         constant_scalars(s.context.state(), constant, a.scale(), a.level()));
  return a;
}

Ciphertext CiphertextOps::linear_combination(std::span<const Ciphertext* const> x,
                                             std::span<const double> c, double constant,
                                             double scale, u32 level) const {
  const auto& s = ev.state();
  const Sum sum = sum_of(s, x, c, constant, scale, level);
  auto out = s.poly(x[0]->components(), x[0]->batch(), level);
  combine(s, out.view(), sum, constant);
  return s.wrap(std::move(out), sum.meta);
}

Ciphertext CiphertextOps::multiply_lazy(const Ciphertext& a, const Ciphertext& b, u32 level) const {
  const auto& s = ev.state();
  s.check_components(a, 2, "product");
  s.check_components(b, 2, "product");
  const Metadata ma = metadata_at(s, a, level), mb = metadata_at(s, b, level);
  check_metadata(ma, mb, false);
  const Metadata meta = product_of(s, ma, mb, "product");
  auto out = s.poly(3, a.batch(), level);
  s.kernels().tensor(*s.stream, out.view(), view_at(s, a, level), view_at(s, b, level));
  return s.wrap(std::move(out), meta);
}

Ciphertext CiphertextOps::chebyshev_product(const Ciphertext& a, const Ciphertext& b,
                                            const Ciphertext& c, u32 level) const {
  const auto& s = ev.state();
  Ciphertext out = multiply_lazy(a, b, level);
  Metadata& meta = out.data().meta;
  meta = sum_metadata(s, meta, meta, "add");
  const double scale = meta.scale;
  const Ciphertext* const less[] = {&c};
  const double minus[] = {-1.0};
  Sum sum = sum_of(s, less, minus, 0.0, scale, level);
  meta = sum_metadata(s, meta, sum.meta, "sub");
  const rlwe::View all = out.data().poly.view(), low = all.components(0, 2),
                   high = all.components(2, 1);
  const auto two = s.ring().integer_scalars(s.ring().window(level), 2, 0);
  sum.terms.insert(sum.terms.begin(), low);
  sum.scalars.insert(sum.scalars.begin(), two);
  s.kernels().linear_combination(*s.stream, low, sum.terms, sum.scalars, nullptr);
  s.kernels().mul_scalar(*s.stream, high, high, two);
  return out;
}

void CiphertextOps::add_combination(Ciphertext& to, std::span<const Ciphertext* const> x,
                                    std::span<const double> c, double constant) const {
  const auto& s = ev.state();
  Metadata& meta = to.data().meta;
  Sum sum = sum_of(s, x, c, constant, meta.scale, meta.level);
  meta = sum_metadata(s, meta, sum.meta, "add");
  const rlwe::View low = to.data().poly.view().components(0, x[0]->components());
  sum.terms.insert(sum.terms.begin(), low);
  sum.scalars.insert(sum.scalars.begin(),
                     s.ring().integer_scalars(s.ring().window(meta.level), 1, 0));
  combine(s, low, sum, constant);
}

void CiphertextOps::add_to(Ciphertext& sum, const Ciphertext& a) const {
  const auto& s = ev.state();
  s.check_pair(sum, a, true);
  Metadata& meta = sum.data().meta;
  meta = sum_metadata(s, meta, a.metadata(), "add");
  const rlwe::View low = sum.data().poly.view().components(0, a.components());
  s.kernels().add(*s.stream, low, low, a.data().poly.view());
}

}  // namespace crenel::ckks
