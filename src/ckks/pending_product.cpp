#include "ckks/pending_product.h"

#include <cmath>

#include "ckks/encode.h"
#include "ckks/magnitude.h"

namespace crenel::ckks {
namespace {

rlwe::Poly switched(const Evaluator::State& s, const PendingProduct& p, const char* operation) {
  s.require_relinearisation(p.meta.level, operation);
  const auto key = s.lease(rlwe::kRelinearisation);
  return s.switcher().multiply_extended(p.a, p.b, key[0], p.meta.level, p.sum());
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
  const auto follows = s.switcher().mod_down_follows(product.meta.level);
  const rlwe::Poly acc = switched(s, product, "relinearise");
  return s.wrap(s.switcher().mod_down(acc, product.meta.level, nullptr), product.meta);
}

Ciphertext relinearised_rescaled(const Evaluator::State& s, const PendingProduct& product) {
  const Metadata meta = rescaled_metadata(s.params(), product.meta, "relinearise_rescale");
  const auto follows = s.switcher().mod_down_rescale_follows(product.meta.level);
  const rlwe::Poly acc = switched(s, product, "relinearise_rescale");
  return s.wrap(s.switcher().mod_down_rescale(acc.view(), product.meta.level), meta);
}

}  // namespace crenel::ckks
