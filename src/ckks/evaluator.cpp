// Linear operations, products, rescale. Each checks metadata, queues kernels, returns a new
// ciphertext.
#include "crenel/ckks/evaluator.h"

#include <algorithm>
#include <cmath>

#include "ckks/polynomial.h"
#include "ckks/scale.h"

namespace crenel::ckks {
namespace {

Metadata with_real(Metadata meta, bool real) {
  meta.real = real;
  return meta;
}

// round(x * scale) as an integer; refuses what does not fit the modulus, without naming it.
i128 scaled_integer(double x, double scale, double log_q) {
  const double v = x * scale, bits = std::min(120.0, log_q - 1.0);
  if (!std::isfinite(v) || std::abs(v) >= std::exp2(bits))
    throw ParameterError(
        cat("a constant at scale ", scale, " is too large, expected a product below 2^", bits),
        {{"scale", scale}, {"log2_bound", bits}});
  return static_cast<i128>(std::nearbyint(v));
}

// The complex constant b at this scale for every limb of the window of `level`.
rlwe::Scalars constant_scalars(const Evaluator::State& s, std::complex<double> b, double scale,
                               u32 level) {
  const double log_q = s.params().log_q(level);
  return s.ring().integer_scalars(s.ring().window(level), scaled_integer(b.real(), scale, log_q),
                                  scaled_integer(b.imag(), scale, log_q));
}

// Components `first` and up of `from` to `to`, both dense and of equal shape.
void copy_components(const Evaluator::State& s, rlwe::Poly& to, const rlwe::Poly& from, u32 first) {
  const std::size_t one = from.limbs().size() * s.ring().ring_dim() * sizeof(rlwe::Word);
  const std::size_t pitch = from.shape().components * one;
  s.stream->copy_rows(to.view().limb(0, first, 0), pitch, from.view().limb(0, first, 0), pitch,
                      pitch - first * one, from.shape().batch);
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
  return Evaluator(std::make_shared<State>(
      State{state_->context, state_->keys, std::move(stream), state_->source}));
}

Ciphertext Evaluator::add(const Ciphertext& a, const Ciphertext& b) const {
  const State& s = *state_;
  s.check_pair(a, b, true);
  if (a.components() < b.components()) return add(b, a);
  auto out = s.poly(a.components(), a.batch(), a.level());
  const rlwe::ConstView va = a.data().poly.view(), vb = b.data().poly.view();
  const u32 common = b.components();
  s.kernels().add(*s.stream, out.view().components(0, common), va.components(0, common), vb);
  // The third component of an unrelinearised sum.
  if (common < a.components()) copy_components(s, out, a.data().poly, common);
  return s.wrap(std::move(out), with_real(a.metadata(), a.metadata().real && b.metadata().real));
}

Ciphertext Evaluator::negate(const Ciphertext& a) const {
  state_->check(a);
  auto out = state_->poly(a.components(), a.batch(), a.level());
  state_->kernels().neg(*state_->stream, out.view(), a.data().poly.view());
  return state_->wrap(std::move(out), a.metadata());
}

Ciphertext Evaluator::sub(const Ciphertext& a, const Ciphertext& b) const {
  const State& s = *state_;
  s.check_pair(a, b, true);
  if (a.components() != b.components()) return add(a, negate(b));
  auto out = s.poly(a.components(), a.batch(), a.level());
  s.kernels().sub(*s.stream, out.view(), a.data().poly.view(), b.data().poly.view());
  return s.wrap(std::move(out), with_real(a.metadata(), a.metadata().real && b.metadata().real));
}

Ciphertext Evaluator::add(const Ciphertext& a, const Plaintext& b) const {
  const State& s = *state_;
  s.check_pair(a, b, true);
  auto out = s.poly(a.components(), a.batch(), a.level());
  s.kernels().add(*s.stream, out.view().components(0, 1), a.data().poly.view().components(0, 1),
                  b.data().poly.view());
  copy_components(s, out, a.data().poly, 1);
  return s.wrap(std::move(out), with_real(a.metadata(), a.metadata().real && b.metadata().real));
}

Ciphertext Evaluator::sub(const Ciphertext& a, const Plaintext& b) const {
  const State& s = *state_;
  s.check_pair(a, b, true);
  auto out = s.poly(a.components(), a.batch(), a.level());
  s.kernels().sub(*s.stream, out.view().components(0, 1), a.data().poly.view().components(0, 1),
                  b.data().poly.view());
  copy_components(s, out, a.data().poly, 1);
  return s.wrap(std::move(out), with_real(a.metadata(), a.metadata().real && b.metadata().real));
}

Ciphertext Evaluator::add(const Ciphertext& a, std::complex<double> b) const {
  const State& s = *state_;
  s.check(a);
  const auto scalars = constant_scalars(s, b, a.scale(), a.level());
  auto out = s.poly(a.components(), a.batch(), a.level());
  s.kernels().add_scalar(*s.stream, out.view().components(0, 1),
                         a.data().poly.view().components(0, 1), scalars);
  copy_components(s, out, a.data().poly, 1);
  return s.wrap(std::move(out), with_real(a.metadata(), a.metadata().real && b.imag() == 0.0));
}

Ciphertext Evaluator::multiply_integer(const Ciphertext& a, i64 re, i64 im) const {
  const State& s = *state_;
  s.check(a);
  auto out = s.poly(a.components(), a.batch(), a.level());
  s.kernels().mul_scalar(*s.stream, out.view(), a.data().poly.view(),
                         s.ring().integer_scalars(s.ring().window(a.level()), re, im));
  return s.wrap(std::move(out), with_real(a.metadata(), a.metadata().real && im == 0));
}

Ciphertext Evaluator::multiply(const Ciphertext& a, const Plaintext& b) const {
  const State& s = *state_;
  s.check_pair(a, b, false);
  const Metadata meta =
      s.product_metadata(a.metadata(), b.scale(), a.metadata().real && b.metadata().real);
  auto out = s.poly(a.components(), a.batch(), a.level());
  s.kernels().mul(*s.stream, out.view(), a.data().poly.view(), b.data().poly.view());
  return s.wrap(std::move(out), meta);
}

Ciphertext Evaluator::multiply(const Ciphertext& a, std::complex<double> b, double scale) const {
  const State& s = *state_;
  s.check(a);
  if (scale == 0.0) scale = a.level() == 0 ? s.params().scale(0) : s.constant_scale(a);
  expect_scale(s.params(), a.level(), scale, "constant's scale");
  const auto scalars = constant_scalars(s, b, scale, a.level());
  const Metadata meta =
      s.product_metadata(a.metadata(), scale, a.metadata().real && b.imag() == 0.0);
  auto out = s.poly(a.components(), a.batch(), a.level());
  s.kernels().mul_scalar(*s.stream, out.view(), a.data().poly.view(), scalars);
  return s.wrap(std::move(out), meta);
}

Ciphertext linear_combination(const Evaluator::State& s, std::span<const Ciphertext* const> x,
                              std::span<const double> c, double constant, double scale) {
  const u32 level = x[0]->level();
  Metadata meta = x[0]->metadata();
  meta.scale = scale;
  std::vector<rlwe::Scalars> scalars;
  std::vector<rlwe::ConstView> first, others;
  const u32 components = x[0]->components();
  for (std::size_t k = 0; k < x.size(); ++k) {
    s.check_pair(*x[0], *x[k], false);
    s.check_components(*x[k], components, "linear combination");
    meta.real = meta.real && x[k]->metadata().real;
    scalars.push_back(constant_scalars(s, c[k], scale / x[k]->scale(), level));
    const rlwe::ConstView v = x[k]->data().poly.view();
    first.push_back(v.components(0, constant == 0.0 ? components : 1));
    others.push_back(v.components(1, components - 1));
  }
  auto out = s.poly(components, x[0]->batch(), level);
  const rlwe::View to = out.view();
  if (constant == 0.0) {
    s.kernels().linear_combination(*s.stream, to, first, scalars, nullptr);
    return s.wrap(std::move(out), meta);
  }
  const rlwe::Scalars added = constant_scalars(s, constant, scale, level);
  s.kernels().linear_combination(*s.stream, to.components(0, 1), first, scalars, &added);
  s.kernels().linear_combination(*s.stream, to.components(1, components - 1), others, scalars,
                                 nullptr);
  return s.wrap(std::move(out), meta);
}

Ciphertext Evaluator::multiply_lazy(const Ciphertext& a, const Ciphertext& b) const {
  const State& s = *state_;
  s.check_components(a, 2, "product");
  s.check_components(b, 2, "product");
  s.check_pair(a, b, false);
  const Metadata meta =
      s.product_metadata(a.metadata(), b.scale(), a.metadata().real && b.metadata().real);
  auto out = s.poly(3, a.batch(), a.level());
  s.kernels().tensor(*s.stream, out.view(), a.data().poly.view(), b.data().poly.view());
  return s.wrap(std::move(out), meta);
}

Ciphertext Evaluator::square_lazy(const Ciphertext& a) const {
  const State& s = *state_;
  s.check_components(a, 2, "square");
  const Metadata meta = s.product_metadata(a.metadata(), a.scale(), a.metadata().real);
  auto out = s.poly(3, a.batch(), a.level());
  s.kernels().tensor_square(*s.stream, out.view(), a.data().poly.view());
  return s.wrap(std::move(out), meta);
}

Ciphertext double_square(const Evaluator::State& s, const Ciphertext& a, double constant) {
  s.check_components(a, 2, "square");
  const Metadata meta = s.product_metadata(a.metadata(), a.scale(), a.metadata().real);
  const rlwe::Scalars added = constant_scalars(s, constant, meta.scale, a.level());
  auto out = s.poly(3, a.batch(), a.level());
  s.kernels().tensor_square(*s.stream, out.view(), a.data().poly.view(), &added);
  return s.wrap(std::move(out), meta);
}

Ciphertext Evaluator::relinearise(const Ciphertext& a) const {
  const State& s = *state_;
  s.check_components(a, 3, "relinearisation");
  s.require_relinearisation("relinearise");
  const auto key = s.lease(rlwe::kRelinearisation);
  const auto ks = s.switcher();
  const rlwe::ConstView v = a.data().poly.view(), low = v.components(0, 2);
  const auto acc = ks.switch_key(v.components(2, 1), key[0], a.level());
  return s.wrap(ks.mod_down(acc, a.level(), &low), a.metadata());
}

Ciphertext Evaluator::relinearise_rescale(const Ciphertext& a) const {
  const State& s = *state_;
  s.check_components(a, 3, "relinearisation");
  s.check_can_rescale(a, "relinearise_rescale");
  s.require_relinearisation("relinearise_rescale");
  const auto key = s.lease(rlwe::kRelinearisation);
  const auto ks = s.switcher();
  const rlwe::ConstView v = a.data().poly.view(), low = v.components(0, 2);
  const auto acc = ks.switch_key(v.components(2, 1), key[0], a.level(), &low);
  return s.wrap(ks.mod_down_rescale(acc, a.level()), rescaled_metadata(s.params(), a.metadata()));
}

Ciphertext Evaluator::multiply(const Ciphertext& a, const Ciphertext& b) const {
  state_->require_relinearisation("multiply");  // refuse before any work
  return relinearise(multiply_lazy(a, b));
}

Ciphertext Evaluator::square(const Ciphertext& a) const {
  state_->require_relinearisation("square");
  return relinearise(square_lazy(a));
}

Ciphertext Evaluator::multiply_rescale(const Ciphertext& a, const Ciphertext& b) const {
  state_->require_relinearisation("multiply");
  state_->check_can_rescale(a, "multiply");
  return relinearise_rescale(multiply_lazy(a, b));
}

Ciphertext Evaluator::rescale(const Ciphertext& a) const {
  const State& s = *state_;
  s.check_can_rescale(a, "rescale");
  auto out = s.poly(a.components(), a.batch(), a.level() - 1);
  s.kernels().divide(*s.stream, out.view(), a.data().poly.view(), s.ring().rescale(a.level()));
  return s.wrap(std::move(out), rescaled_metadata(s.params(), a.metadata()));
}

}  // namespace crenel::ckks
