// Sums of products with constants, and what polynomials fold into their neighbours: limbs of
// operands at higher levels are read where they lie, and sums are made in place. The same bits as
// the compositions of the evaluator's operations.
#include <algorithm>
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

struct Terms {
  std::vector<rlwe::ConstView> views;
  std::vector<rlwe::Scalars> scalars;
  Metadata meta;
};

Terms sum_of(const Evaluator::State& s, std::span<const Ciphertext* const> x,
             std::span<const double> c, double constant, double scale, u32 level) {
  Terms sum;
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
    sum.views.push_back(view_at(s, *x[k], level));
  }
  sum.meta = magnitude::bounded(s.params(), sum.meta, bound, "linear combination");
  return sum;
}

// Into `to`, which may be one of the terms: the constant is added to the first component.
void combine(const Evaluator::State& s, const rlwe::View& to, const Terms& sum, double constant) {
  const u32 components = to.shape.components;
  if (constant == 0.0) {
    s.kernels().linear_combination(*s.stream, to, sum.views, sum.scalars, nullptr);
    return;
  }
  const auto part = [&](u32 first, u32 count, const rlwe::Scalars* added) {
    std::vector<rlwe::ConstView> terms;
    for (const auto& v : sum.views) terms.push_back(v.components(first, count));
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
  const Terms sum = sum_of(s, x, c, constant, scale, x[0]->level());
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
  const Terms sum = sum_of(s, x, c, constant, scale, level);
  auto out = s.poly(x[0]->components(), x[0]->batch(), level);
  combine(s, out.view(), sum, constant);
  return s.wrap(std::move(out), sum.meta);
}

CiphertextOps::Sum CiphertextOps::product(const Ciphertext& a, const Ciphertext& b,
                                          u32 level) const {
  const auto& s = ev.state();
  s.check_components(a, 2, "product");
  s.check_components(b, 2, "product");
  const Metadata ma = metadata_at(s, a, level), mb = metadata_at(s, b, level);
  check_metadata(ma, mb, false);
  return PendingProduct{view_at(s, a, level), view_at(s, b, level),
                        product_of(s, ma, mb, "product")};
}

CiphertextOps::Sum CiphertextOps::product(Ciphertext&& a, const Ciphertext& b, u32 level) const {
  Sum sum = product(a, b, level);
  std::get<PendingProduct>(sum).kept.push_back(std::move(a));
  return sum;
}

CiphertextOps::Sum CiphertextOps::chebyshev_product(const Ciphertext& a, const Ciphertext& b,
                                                    const Ciphertext& c, u32 level) const {
  const auto& s = ev.state();
  Sum sum = product(a, b, level);
  PendingProduct& p = std::get<PendingProduct>(sum);
  p.doubled = true;
  p.meta = sum_metadata(s, p.meta, p.meta, "add");
  const Ciphertext* const less[] = {&c};
  const double minus[] = {-1.0};
  const Terms terms = sum_of(s, less, minus, 0.0, p.meta.scale, level);
  p.meta = sum_metadata(s, p.meta, terms.meta, "sub");
  p.addends = terms.views;
  p.factors = terms.scalars;
  return sum;
}

void CiphertextOps::add_combination(Sum& sum, std::span<const Ciphertext* const> x,
                                    std::span<const double> c, double constant) const {
  const auto& s = ev.state();
  auto* const pending = std::get_if<PendingProduct>(&sum);
  Metadata& meta = pending ? pending->meta : std::get<Ciphertext>(sum).data().meta;
  Terms terms = sum_of(s, x, c, constant, meta.scale, meta.level);
  meta = sum_metadata(s, meta, terms.meta, "add");
  if (pending && pending->addends.empty() && !pending->constant) {
    if (std::ranges::any_of(c, [](double v) { return v != 0.0; })) {
      pending->addends = std::move(terms.views);
      pending->factors = std::move(terms.scalars);
    }
    if (constant != 0.0)
      pending->constant = constant_scalars(s.context.state(), constant, meta.scale, meta.level);
    return;
  }
  if (pending) sum = made(s, *pending);
  Ciphertext& to = std::get<Ciphertext>(sum);
  const rlwe::View low = to.data().poly.view().components(0, x[0]->components());
  terms.views.insert(terms.views.begin(), low);
  const auto& limbs = s.ring().window(to.level());
  terms.scalars.insert(terms.scalars.begin(), s.ring().integer_scalars(limbs, 1, 0));
  terms.meta = to.metadata();
  combine(s, low, terms, constant);
}

void CiphertextOps::add_to(Sum& sum, Sum a) const {
  const auto& s = ev.state();
  if (const auto* pending = std::get_if<PendingProduct>(&a)) a = made(s, *pending);
  Ciphertext& other = std::get<Ciphertext>(a);
  auto* const pending = std::get_if<PendingProduct>(&sum);
  if (pending && pending->addends.empty()) {
    s.check(other);
    check_metadata(pending->meta, other.metadata(), true);
    pending->meta = sum_metadata(s, pending->meta, other.metadata(), "add");
    pending->addends = {other.data().poly.view()};
    pending->factors = {s.ring().integer_scalars(s.ring().window(other.level()), 1, 0)};
    pending->kept.push_back(std::move(other));
    return;
  }
  if (pending) sum = made(s, *pending);
  Ciphertext& to = std::get<Ciphertext>(sum);
  s.check_pair(to, other, true);
  Metadata& meta = to.data().meta;
  meta = sum_metadata(s, meta, other.metadata(), "add");
  const rlwe::View low = to.data().poly.view().components(0, other.components());
  s.kernels().add(*s.stream, low, low, other.data().poly.view());
}

Ciphertext CiphertextOps::finish(const Sum& sum) const {
  if (const auto* pending = std::get_if<PendingProduct>(&sum))
    return relinearised_rescaled(ev.state(), *pending);
  const Ciphertext& a = std::get<Ciphertext>(sum);
  return a.components() == 3 ? ev.relinearise_rescale(a) : ev.rescale(a);
}

void CiphertextOps::set_scale(Sum& sum, double scale) const {
  if (auto* const pending = std::get_if<PendingProduct>(&sum))
    pending->meta.scale = scale;
  else
    set_scale(std::get<Ciphertext>(sum), scale);
}

}  // namespace crenel::ckks
