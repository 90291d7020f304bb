// Linear operations, products, rescale. Each checks metadata, queues kernels, returns a new
// ciphertext.
#include "crenel/ckks/evaluator.h"

#include <algorithm>
#include <cmath>

#include "ckks/encode.h"
#include "ckks/magnitude.h"
#include "ckks/observer.h"
#include "ckks/polynomial.h"
#include "ckks/scale.h"

namespace crenel::ckks {
Metadata sum_metadata(const Evaluator::State& s, const Metadata& a, const Metadata& b,
                      const char* operation) {
  Metadata meta = a;
  meta.real = a.real && b.real;
  return magnitude::bounded(s.params(), meta, magnitude::sum(a.bound, b.bound), operation);
}

Metadata product_of(const Evaluator::State& s, const Metadata& a, const Metadata& b,
                    const char* operation) {
  return magnitude::bounded(s.params(), s.product_metadata(a, b.scale, a.real && b.real),
                            magnitude::product(a.bound, b.bound), operation);
}

namespace {

// Components `first` and up of `from` to `to`, both dense and of equal shape.
void copy_components(const Evaluator::State& s, rlwe::Poly& to, const rlwe::Poly& from, u32 first) {
  const std::size_t one = from.limbs().size() * s.ring().ring_dim() * sizeof(rlwe::Word);
  const std::size_t pitch = from.shape().components * one;
  s.stream->copy_rows(to.view().limb(0, first, 0), pitch, from.view().limb(0, first, 0), pitch,
                      pitch - first * one, from.shape().batch);
}

using BinaryKernel = void (device::PolyKernels::*)(device::Stream&, const rlwe::View&,
                                                   const rlwe::ConstView&, const rlwe::ConstView&);

// The sum or difference with a plaintext, which the first component alone sees.
Ciphertext with_plaintext(const Evaluator::State& s, const Ciphertext& a, const Plaintext& b,
                          const char* operation, BinaryKernel kernel) {
  s.check_pair(a, b, true);
  const Metadata meta = sum_metadata(s, a.metadata(), b.metadata(), operation);
  auto out = s.poly(a.components(), a.batch(), a.level());
  (s.kernels().*kernel)(*s.stream, out.view().components(0, 1),
                        a.data().poly.view().components(0, 1), b.data().poly.view());
  copy_components(s, out, a.data().poly, 1);
  return s.wrap(std::move(out), meta);
}

}  // namespace

Evaluator::Evaluator(const Context& context, EvaluationKeys keys) {
  std::shared_ptr<rlwe::KeySource> source;
  if (keys.data()) {
    expect_home(keys.data()->params_id, keys.data()->ring->device(), context.state(), "keys");
    source = keys.data()->source();
  }
  state_ = std::make_shared<State>(
      State{context, std::move(keys), context.state().ring->shared_stream(), std::move(source)});
}

const Context& Evaluator::context() const { return state_->context; }
const EvaluationKeys& Evaluator::keys() const { return state_->keys; }
device::Stream& Evaluator::stream() const { return *state_->stream; }

Evaluator Evaluator::on(std::shared_ptr<device::Stream> stream) const {
  if (!stream) throw ParameterError("evaluator on no stream", {{"stream", "null"}});
  expect_same_device(stream->device(), state_->context.state(), "stream");
  if (stream != state_->stream)
    stream->wait_for(*state_->stream);  // keys, and operands made so far
  const Evaluator moved(std::make_shared<State>(
      State{state_->context, state_->keys, std::move(stream), state_->source}));
  return state_->observer ? moved.checked(state_->observer->client()) : moved;
}

Evaluator Evaluator::checked(const Client& client) const {
  const State& s = *state_;
  if (s.observer) return s.observer->evaluator().checked(client);
  s.check_serves(client.context());
  expect_same_secret_key(client.secret_key_id(), s.keys.secret_key_id(), "client", "these keys");
  return Evaluator(std::make_shared<State>(State{s.context, s.keys, s.stream, s.source,
                                                 std::make_shared<const Observer>(*this, client)}));
}

Ciphertext Evaluator::add(const Ciphertext& a, const Ciphertext& b) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "add", [](const auto& on, const auto&... x) { return on.add(x...); }, a, b);
  s.check_pair(a, b, true);
  if (a.components() < b.components()) return add(b, a);
  const Metadata meta = sum_metadata(s, a.metadata(), b.metadata(), "add");
  auto out = s.poly(a.components(), a.batch(), a.level());
  const rlwe::ConstView va = a.data().poly.view(), vb = b.data().poly.view();
  const u32 common = b.components();
  s.kernels().add(*s.stream, out.view().components(0, common), va.components(0, common), vb);
  // The third component of an unrelinearised sum.
  if (common < a.components()) copy_components(s, out, a.data().poly, common);
  return s.wrap(std::move(out), meta);
}

Ciphertext Evaluator::negate(const Ciphertext& a) const {
  if (state_->observer)
    return state_->observer->watch(
        "negate", [](const auto& on, const auto& x) { return on.negate(x); }, a);
  state_->check(a);
  auto out = state_->poly(a.components(), a.batch(), a.level());
  state_->kernels().neg(*state_->stream, out.view(), a.data().poly.view());
  return state_->wrap(std::move(out), a.metadata());
}

Ciphertext Evaluator::sub(const Ciphertext& a, const Ciphertext& b) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "sub", [](const auto& on, const auto&... x) { return on.sub(x...); }, a, b);
  s.check_pair(a, b, true);
  const Metadata meta = sum_metadata(s, a.metadata(), b.metadata(), "sub");
  if (a.components() != b.components()) return add(a, negate(b));
  auto out = s.poly(a.components(), a.batch(), a.level());
  s.kernels().sub(*s.stream, out.view(), a.data().poly.view(), b.data().poly.view());
  return s.wrap(std::move(out), meta);
}

Ciphertext Evaluator::add(const Ciphertext& a, const Plaintext& b) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "add", [](const auto& on, const auto&... x) { return on.add(x...); }, a, b);
  return with_plaintext(s, a, b, "add", &device::PolyKernels::add);
}

Ciphertext Evaluator::sub(const Ciphertext& a, const Plaintext& b) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "sub", [](const auto& on, const auto&... x) { return on.sub(x...); }, a, b);
  return with_plaintext(s, a, b, "sub", &device::PolyKernels::sub);
}

Ciphertext Evaluator::add(const Ciphertext& a, std::complex<double> b) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch("add", [&](const auto& on, const auto& x) { return on.add(x, b); }, a);
  s.check(a);
  Metadata meta = a.metadata();
  meta.real = meta.real && b.imag() == 0.0;
  meta = magnitude::bounded(s.params(), meta, magnitude::sum(meta.bound, std::abs(b)), "add");
  const auto scalars = constant_scalars(s.context.state(), b, a.scale(), a.level());
  auto out = s.poly(a.components(), a.batch(), a.level());
  s.kernels().add_scalar(*s.stream, out.view().components(0, 1),
                         a.data().poly.view().components(0, 1), scalars);
  copy_components(s, out, a.data().poly, 1);
  return s.wrap(std::move(out), meta);
}

Ciphertext Evaluator::multiply_integer(const Ciphertext& a, i64 re, i64 im) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "multiply_integer",
        [&](const auto& on, const auto& x) { return on.multiply_integer(x, re, im); }, a);
  s.check(a);
  Metadata meta = a.metadata();
  meta.real = meta.real && im == 0;
  const double size = std::hypot(static_cast<double>(re), static_cast<double>(im));
  meta =
      magnitude::bounded(s.params(), meta, magnitude::scaled(meta.bound, size), "multiply_integer");
  auto out = s.poly(a.components(), a.batch(), a.level());
  s.kernels().mul_scalar(*s.stream, out.view(), a.data().poly.view(),
                         s.ring().integer_scalars(s.ring().window(a.level()), re, im));
  return s.wrap(std::move(out), meta);
}

Ciphertext Evaluator::multiply(const Ciphertext& a, const Plaintext& b) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "multiply", [](const auto& on, const auto&... x) { return on.multiply(x...); }, a, b);
  s.check_pair(a, b, false);
  const Metadata meta = product_of(s, a.metadata(), b.metadata(), "multiply");
  auto out = s.poly(a.components(), a.batch(), a.level());
  s.kernels().mul(*s.stream, out.view(), a.data().poly.view(), b.data().poly.view());
  return s.wrap(std::move(out), meta);
}

Ciphertext Evaluator::multiply(const Ciphertext& a, std::complex<double> b, double scale) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "multiply", [&](const auto& on, const auto& x) { return on.multiply(x, b, scale); }, a);
  s.check(a);
  if (scale == 0.0) scale = a.level() == 0 ? s.params().scale(0) : s.constant_scale(a);
  expect_scale(s.params(), a.level(), scale, "constant's scale");
  const auto scalars = constant_scalars(s.context.state(), b, scale, a.level());
  const Metadata meta = magnitude::bounded(
      s.params(), s.product_metadata(a.metadata(), scale, a.metadata().real && b.imag() == 0.0),
      magnitude::scaled(a.bound(), std::abs(b)), "multiply");
  auto out = s.poly(a.components(), a.batch(), a.level());
  s.kernels().mul_scalar(*s.stream, out.view(), a.data().poly.view(), scalars);
  return s.wrap(std::move(out), meta);
}

Ciphertext Evaluator::multiply_lazy(const Ciphertext& a, const Ciphertext& b) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "multiply_lazy", [](const auto& on, const auto&... x) { return on.multiply_lazy(x...); }, a,
        b);
  return made(s, pending_product(s, a, b));
}

Ciphertext Evaluator::square_lazy(const Ciphertext& a) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "square_lazy", [](const auto& on, const auto& x) { return on.square_lazy(x); }, a);
  return made(s, pending_square(s, a));
}

Ciphertext double_square(const Evaluator::State& s, const Ciphertext& a, double constant) {
  return made(s, pending_double_square(s, a, constant));
}

Ciphertext Evaluator::relinearise(const Ciphertext& a) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "relinearise", [](const auto& on, const auto& x) { return on.relinearise(x); }, a);
  s.check_components(a, 3, "relinearisation");
  s.require_relinearisation(a.level(), "relinearise");
  const auto [id, level] = s.choice(rlwe::kRelinearisation, a.level());
  const auto key = s.lease(id);
  const auto ks = s.switcher();
  const rlwe::ConstView v = a.data().poly.view(), low = v.components(0, 2);
  return s.wrap(ks.switch_down({.in = v.components(2, 1)}, key[0], level, &low), a.metadata());
}

Ciphertext Evaluator::relinearise_rescale(const Ciphertext& a) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "relinearise_rescale",
        [](const auto& on, const auto& x) { return on.relinearise_rescale(x); }, a);
  s.check_components(a, 3, "relinearisation");
  s.check_can_rescale(a, "relinearise_rescale");
  s.require_relinearisation(a.level(), "relinearise_rescale");
  const auto [id, level] = s.choice(rlwe::kRelinearisation, a.level());
  const auto key = s.lease(id);
  const auto ks = s.switcher();
  const rlwe::ConstView v = a.data().poly.view(), low = v.components(0, 2);
  return s.wrap(ks.switch_rescale({.in = v.components(2, 1), .addend = &low}, key[0], level),
                rescaled_metadata(s.params(), a.metadata()));
}

Ciphertext Evaluator::multiply(const Ciphertext& a, const Ciphertext& b) const {
  if (state_->observer)
    return state_->observer->watch(
        "multiply", [](const auto& on, const auto&... x) { return on.multiply(x...); }, a, b);
  state_->require_relinearisation(a.level(), "multiply");  // refuse before any work
  return relinearised(*state_, pending_product(*state_, a, b));
}

Ciphertext Evaluator::square(const Ciphertext& a) const {
  if (state_->observer)
    return state_->observer->watch(
        "square", [](const auto& on, const auto& x) { return on.square(x); }, a);
  state_->require_relinearisation(a.level(), "square");
  return relinearised(*state_, pending_square(*state_, a));
}

Ciphertext Evaluator::multiply_rescale(const Ciphertext& a, const Ciphertext& b) const {
  if (state_->observer)
    return state_->observer->watch(
        "multiply_rescale",
        [](const auto& on, const auto&... x) { return on.multiply_rescale(x...); }, a, b);
  state_->require_relinearisation(a.level(), "multiply");
  state_->check_can_rescale(a, "multiply");
  return relinearised_rescaled(*state_, pending_product(*state_, a, b));
}

Ciphertext Evaluator::rescale(const Ciphertext& a) const {
  const State& s = *state_;
  if (s.observer)
    return s.observer->watch(
        "rescale", [](const auto& on, const auto& x) { return on.rescale(x); }, a);
  s.check_can_rescale(a, "rescale");
  auto out = s.poly(a.components(), a.batch(), a.level() - 1);
  s.kernels().divide(*s.stream, out.view(), a.data().poly.view(), s.ring().rescale(a.level()));
  return s.wrap(std::move(out), rescaled_metadata(s.params(), a.metadata()));
}

}  // namespace crenel::ckks
