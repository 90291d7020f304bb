#include "ckks/pending_product.h"

#include <cmath>

#include "ckks/encode.h"
#include "ckks/magnitude.h"

namespace crenel::ckks {
namespace {

device::SwitchOf switch_of(const PendingProduct& p) {
  return {.in = p.a, .other = p.b, .sum = p.sum()};
}

}  // namespace

device::ProductSum PendingProduct::sum() const {
  return {doubled, constant ? &*constant : nullptr, addends, factors};
}

rlwe::ConstView view_at(const Evaluator::State& s, const Ciphertext& a, u32 level) {
  const rlwe::ConstView v = a.data().poly.view();
  return a.level() == level ? v : v.restrict_to(s.ring().window(level));
}

PendingProduct pending_product(const Evaluator::State& s, const Ciphertext& a,
                               const Ciphertext& b) {
  s.check_components(a, 2, "product");
  s.check_components(b, 2, "product");
  s.check_pair(a, b, false);
  return {a.data().poly.view(), b.data().poly.view(),
          product_of(s, a.metadata(), b.metadata(), "product")};
}

PendingProduct pending_square(const Evaluator::State& s, const Ciphertext& a) {
  s.check_components(a, 2, "square");
  const rlwe::ConstView v = a.data().poly.view();
  return {v, v, product_of(s, a.metadata(), a.metadata(), "square")};
}

PendingProduct pending_double_square(const Evaluator::State& s, const Ciphertext& a,
                                     double constant) {
  PendingProduct p = pending_square(s, a);
  const double bound = magnitude::sum(magnitude::scaled(p.meta.bound, 2.0), std::abs(constant));
  p.meta = magnitude::bounded(s.params(), p.meta, bound, "square");
  p.doubled = true;
  p.constant = constant_scalars(s.context.state(), constant, p.meta.scale, a.level());
  return p;
}

Ciphertext made(const Evaluator::State& s, const PendingProduct& product) {
  auto out = s.poly(3, product.a.shape.batch, product.meta.level);
  s.kernels().product_sum(*s.stream, out.view(), product.a, product.b, product.sum());
  return s.wrap(std::move(out), product.meta);
}

Ciphertext relinearised(const Evaluator::State& s, const PendingProduct& product) {
  s.require_relinearisation(product.meta.level, "relinearise");
  const auto [id, level] = s.choice(rlwe::kRelinearisation, product.meta.level);
  const auto key = s.lease(id);
  return s.wrap(s.switcher().switch_down(switch_of(product), key[0], level), product.meta);
}

Ciphertext relinearised_rescaled(const Evaluator::State& s, const PendingProduct& product) {
  const Metadata meta = rescaled_metadata(s.params(), product.meta, "relinearise_rescale");
  s.require_relinearisation(product.meta.level, "relinearise_rescale");
  const auto [id, level] = s.choice(rlwe::kRelinearisation, product.meta.level);
  const auto key = s.lease(id);
  return s.wrap(s.switcher().switch_rescale(switch_of(product), key[0], level), meta);
}

}  // namespace crenel::ckks
