// Every operation on error bounds (docs/theory/precision.md, "Bounds for results that are shared").
#include "crenel/ckks/error_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>

#include "ckks/magnitude.h"
#include "ckks/model_ops.h"
#include "ckks/noise.h"
#include "ckks/norms.h"

namespace crenel::ckks {
namespace {

/// Rounding of one number in double precision, and of a transform of n of them (its butterflies).
constexpr double kDouble = 0x1p-53;
double transform_error(u64 slots) { return 6.0 * kDouble * (std::bit_width(slots) + 2.0); }

void require_ciphertext(const ErrorBound& a, u32 components, const char* operation) {
  if (a.components != components)
    throw StateError(cat(operation, " of ", a.components, " components, expected ", components),
                     {{"components", a.components}, {"expected", components}});
}

void require_params(const Params& params, const ErrorBound& a) {
  if (a.params_id != params.id())
    throw StateError(cat("error bound of parameters ", a.params_id, ", expected ", params.id()),
                     {{"found", a.params_id}, {"expected", params.id()}});
}

double checked_scale(double scale, double canonical) {
  if (scale == 0.0) return canonical;
  if (!std::isfinite(scale) || scale < 1.0)
    throw ParameterError(cat("scale ", scale, ", expected a finite number >= 1"),
                         {{"scale", scale}});
  return scale;
}

/// Errors of a polynomial, at a's scale, on top of a's.
ErrorBound plus(ErrorBound a, const Norms& n) {
  const double scale = a.scale();
  return with_errors(std::move(a), 1.0 / scale * n);
}

/// The message changes by at most `size` in every slot: by a factor next to 1, or by a constant.
ErrorBound shifted(ErrorBound a, double size) {
  a.rms += size, a.max += size, a.ring += size;
  a.variance += size * size;
  return a;
}

/// a times a number of absolute value `factor`, of which at most `rounding` is rounding.
ErrorBound scaled(ErrorBound a, double factor, double rounding) {
  const double f = factor + rounding;
  a.rms *= f, a.max *= f, a.ring *= f;
  a.variance *= f * f;
  const double message = a.message;
  a.message = magnitude::scaled(a.message, factor);
  return rounding == 0.0 ? a : shifted(std::move(a), rounding * message);
}

/// The two parts of a constant are integers at its scale.
double constant_rounding(std::complex<double> b, double scale) {
  return std::numbers::sqrt2 / 2 / scale + kDouble * std::abs(b);
}

NormBounds norms(const Params& params, const ErrorBound& a) {
  return NormBounds(params, a.slots());
}

}  // namespace

ErrorBound ErrorModel::result(ErrorBound a) const {
  require_params(params_, a);
  const double bits = std::log2((a.message + a.ring) * a.scale()) + 1.0;
  if (!(bits < params_.log_q(a.level())))
    throw StateError(cat("error model: slots of up to ", a.message, " and errors of up to ", a.ring,
                         " at scale 2^", std::log2(a.scale()), " do not fit level ", a.level(),
                         ", whose modulus is 2^", params_.log_q(a.level())),
                     {{"message", a.message},
                      {"error", a.ring},
                      {"scale", a.scale()},
                      {"level", a.level()},
                      {"log_q", params_.log_q(a.level())}});
  return a;
}

ErrorBound ErrorModel::plaintext(double max_abs, bool real, std::optional<u32> level, double scale,
                                 u64 slots) const {
  ErrorBound a;
  a.components = 1;
  a.params_id = params_.id();
  a.meta.level = level.value_or(params_.normal_top_level());
  if (a.level() > params_.max_level())
    throw ParameterError(cat("level ", a.level(), ", expected at most ", params_.max_level()),
                         {{"level", a.level()}, {"max_level", params_.max_level()}});
  a.meta.scale = checked_scale(scale, params_.scale(a.level()));
  a.meta.slots = slots == 0 ? params_.slots() : slots;
  if (!std::has_single_bit(a.slots()) || a.slots() > params_.slots())
    throw ParameterError(cat("slots ", slots, ", expected a power of two up to ", params_.slots()),
                         {{"slots", slots}, {"max_slots", params_.slots()}});
  a.meta.real = real;
  if (!std::isfinite(max_abs) || max_abs < 0.0)
    throw ParameterError(cat("largest slot ", max_abs, ", expected a finite number >= 0"),
                         {{"max_abs", max_abs}});
  a.message = max_abs;
  const NormBounds n = norms(params_, a);
  a = plus(std::move(a), n.rounding());
  // The transform to coefficients is in double precision: an error of this size in the 2-norm,
  // which one slot may hold all of.
  const double e = transform_error(a.slots()) * max_abs;
  const double slot = e * std::sqrt(2.0 * static_cast<double>(a.slots()));
  a.rms += e, a.max += slot, a.ring += slot;
  return result(std::move(a));
}

ErrorBound ErrorModel::input(double max_abs, bool real, std::optional<u32> level, double scale,
                             u64 slots, Encryption encryption) const {
  if (!(max_abs > 0.0))
    throw ParameterError(cat("largest input ", max_abs, ", expected a positive number"),
                         {{"max_abs", max_abs}});
  ErrorBound a = plaintext(max_abs, real, level, scale, slots);
  a.components = 2;
  const NormBounds n = norms(params_, a);
  return result(plus(std::move(a), encryption == Encryption::public_key
                                       ? n.public_key_encryption()
                                       : n.secret_key_encryption()));
}

ErrorBound ErrorModel::add(const ErrorBound& a, const ErrorBound& b) const {
  require_params(params_, a), require_params(params_, b);
  check_metadata(a.meta, b.meta, true);
  ErrorBound out = a;
  out.components = std::max(a.components, b.components);
  out.meta.real = a.meta.real && b.meta.real;
  out.message = magnitude::sum(a.message, b.message);
  out.rms += b.rms, out.max += b.max, out.ring += b.ring;
  out.variance += b.variance;
  out.failure += b.failure;
  return result(std::move(out));
}

ErrorBound ErrorModel::sub(const ErrorBound& a, const ErrorBound& b) const { return add(a, b); }

ErrorBound ErrorModel::add(const ErrorBound& a, std::complex<double> b) const {
  ErrorBound out = a;
  out.message = magnitude::sum(a.message, std::abs(b));
  out.meta.real = a.meta.real && b.imag() == 0.0;
  return result(shifted(std::move(out), constant_rounding(b, a.scale())));
}

ErrorBound ErrorModel::multiply_integer(const ErrorBound& a, i64 re, i64 im) const {
  ErrorBound out = scaled(a, std::hypot(static_cast<double>(re), static_cast<double>(im)), 0.0);
  out.meta.real = a.meta.real && im == 0;
  return result(std::move(out));
}

ErrorBound ErrorModel::multiply(const ErrorBound& a, std::complex<double> b, double scale) const {
  if (scale == 0.0)
    scale = a.level() == 0 ? params_.scale(0) : constant_scale(params_, a.level(), a.scale());
  scale = checked_scale(scale, scale);
  ErrorBound out = scaled(a, std::abs(b), constant_rounding(b, scale));
  out.meta = product_metadata(params_, a.meta, scale, a.meta.real && b.imag() == 0.0);
  return result(std::move(out));
}

// m1 e2 + m2 e1 + e1 e2. Slots of messages are slots of the kept polynomial, and so are a
// plaintext's errors; the kept part of a product with one of these is the product of kept parts.
ErrorBound ErrorModel::multiply_lazy(const ErrorBound& a, const ErrorBound& b) const {
  require_params(params_, a), require_params(params_, b);
  require_ciphertext(a, 2, "product");
  if (b.components != 1) require_ciphertext(b, 2, "product");
  check_metadata(a.meta, b.meta, false);
  ErrorBound out = a;
  out.meta = product_metadata(params_, a.meta, b.scale(), a.meta.real && b.meta.real);
  out.components = b.components == 1 ? 2 : 3;
  const bool full = a.slots() == params_.slots(), plain = b.components == 1;
  const double both = full    ? std::min(a.rms * b.ring, b.rms * a.ring)
                      : plain ? a.rms * b.max
                              : a.ring * b.ring;
  out.message = magnitude::product(a.message, b.message);
  out.rms = a.message * b.rms + b.message * a.rms + both;
  out.max = a.message * b.max + b.message * a.max + (plain ? a.max * b.max : a.ring * b.ring);
  out.ring = a.message * b.ring + b.message * a.ring + a.ring * b.ring;
  out.variance = a.message * a.message * b.variance + b.message * b.message * a.variance +
                 a.variance * b.variance;
  out.failure = a.failure + b.failure;
  return result(std::move(out));
}

ErrorBound ErrorModel::multiply(const ErrorBound& a, const ErrorBound& b) const {
  return b.components == 1 ? multiply_lazy(a, b) : relinearise(multiply_lazy(a, b));
}

ErrorBound ErrorModel::relinearise(const ErrorBound& a) const {
  require_ciphertext(a, 3, "relinearisation");
  ErrorBound out = plus(a, norms(params_, a).key_switch(a.level()));
  out.components = 2;
  return result(std::move(out));
}

ErrorBound ErrorModel::relinearise_rescale(const ErrorBound& a) const {
  require_ciphertext(a, 3, "relinearisation");
  ErrorBound out = a;
  out.meta = rescaled_metadata(params_, a.meta, "relinearise_rescale");
  out.components = 2;
  return result(plus(std::move(out), norms(params_, a).merged(a.level())));
}

ErrorBound ErrorModel::multiply_rescale(const ErrorBound& a, const ErrorBound& b) const {
  if (a.level() == 0) refuse_level(params_, "multiply", 0, 1);
  return relinearise_rescale(multiply_lazy(a, b));
}

ErrorBound ErrorModel::rescale(const ErrorBound& a) const {
  require_params(params_, a);
  if (a.components == 3)
    throw UnsupportedError("error model: rescale of three components, expected a relinearised one",
                           {{"components", 3}, {"expected", 2}});
  require_ciphertext(a, 2, "rescale");
  ErrorBound out = a;
  out.meta = rescaled_metadata(params_, a.meta);
  return result(plus(std::move(out), norms(params_, a).division()));
}

ErrorBound ErrorModel::adjust_level(const ErrorBound& a, u32 level, double scale) const {
  require_params(params_, a);
  return ckks::adjust_level(ModelOps{*this}, a, level, scale);
}

ErrorBound ErrorModel::rotate(const ErrorBound& a, i64 steps) const {
  require_params(params_, a);
  require_ciphertext(a, 2, "rotation");
  if (reduced_steps(steps, a.slots()) == 0) return a;
  return result(plus(a, norms(params_, a).key_switch(a.level())));
}

ErrorBound ErrorModel::conjugate(const ErrorBound& a) const {
  require_params(params_, a);
  require_ciphertext(a, 2, "conjugation");
  return result(plus(a, norms(params_, a).key_switch(a.level())));
}

std::vector<ErrorBound> ErrorModel::rotate_many(const ErrorBound& a,
                                                std::span<const i64> steps) const {
  std::vector<ErrorBound> out;
  for (i64 k : steps) out.push_back(rotate(a, k));
  return out;
}

// One division for all; the switches are added before it.
ErrorBound ErrorModel::rotate_sum(const ErrorBound& a, std::span<const i64> steps) const {
  require_params(params_, a);
  require_ciphertext(a, 2, "rotation");
  if (steps.empty()) throw ParameterError("rotate_sum of no steps, expected at least one", {});
  const NormBounds n = norms(params_, a);
  ErrorBound out = scaled(a, static_cast<double>(steps.size()), 0.0);
  for (i64 k : steps)
    if (reduced_steps(k, a.slots()) != 0) out = plus(std::move(out), n.gadget(a.level()));
  return result(plus(std::move(out), n.division()));
}

ErrorBound ErrorModel::sum_slots(const ErrorBound& a, u64 count, i64 stride) const {
  require_ciphertext(a, 2, "rotation");
  check_sum(count, a.slots());
  stride %= static_cast<i64>(a.slots());
  ErrorBound out = a;
  for (u64 k = 1; k < count; k *= 2) {
    const i64 steps[] = {0, stride * static_cast<i64>(k)};
    out = rotate_sum(out, steps);
  }
  return out;
}

// Kept slots of fewer are means over those that were equal: their bounds hold. Of more, the slots
// are values of the whole polynomial. Independent errors fill the ring evenly.
ErrorBound ErrorModel::with_slots(const ErrorBound& a, u64 slots, bool repeating) const {
  require_params(params_, a);
  check_relabelling(params_, a.slots(), slots, repeating);
  ErrorBound out = a;
  out.meta.slots = slots;
  if (slots > a.slots()) {
    out.rms = out.max = std::max(a.ring, a.max);
    out.variance *= static_cast<double>(slots) / static_cast<double>(a.slots());
  } else if (slots < a.slots()) {
    out.ring = std::max(a.ring, a.max);
  }
  return result(std::move(out));
}

ErrorBound ErrorModel::polynomial(const ErrorBound& x, std::span<const double> coefficients,
                                  PolynomialBasis basis, double a, double b) const {
  require_params(params_, x);
  require_ciphertext(x, 2, "polynomial");
  const PolynomialTask task = polynomial_task(params_, x.level(), coefficients, basis, a, b);
  if (task.degree == 0) return add(multiply_integer(x, 0), std::complex<double>(coefficients[0]));
  return ckks::polynomial(ModelOps{*this}, x, coefficients, basis, a, b, task);
}

ErrorBound ModelOps::drop(const ErrorBound& a, u32 level) const {
  ErrorBound out = a;
  out.meta.level = level;
  return ev.result(std::move(out));
}

ErrorBound ModelOps::double_square(const ErrorBound& a, double constant) const {
  const ErrorBound product = ev.square_lazy(a);
  return ev.add(ev.add(product, product), std::complex<double>(constant));
}

ErrorBound ModelOps::linear_combination(std::span<const ErrorBound* const> x,
                                        std::span<const double> c, double constant,
                                        double scale) const {
  std::optional<ErrorBound> sum;
  for (std::size_t k = 0; k < x.size(); ++k) {
    ErrorBound term = scaled(*x[k], std::abs(c[k]), constant_rounding(c[k], scale / x[k]->scale()));
    term.meta.scale = scale;
    sum = sum ? ev.add(*sum, term) : ev.result(std::move(term));
  }
  const ErrorBound& whole = sum.value();
  return constant == 0.0 ? whole : ev.add(whole, std::complex<double>(constant));
}

void ModelOps::set_scale(ErrorBound& a, double scale) const {
  const double size = std::abs(a.scale() / scale - 1.0) * a.message;
  a = shifted(std::move(a), size);
  a.meta.scale = scale;
}

void ModelOps::limit_chebyshev(ErrorBound& a, const ErrorBound& x, u32 i) const {
  a.message = std::min(a.message, magnitude::chebyshev(x.message, x.meta.real, i));
}

}  // namespace crenel::ckks
