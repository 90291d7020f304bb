// The convenient form of error bounds; its policy is that of ciphertexts (ckks/operand_policy.h).
#include <algorithm>

#include "ckks/model_ops.h"
#include "ckks/operand_policy.h"

namespace crenel::ckks {
namespace {

using Complex = std::complex<double>;

ErrorBound vector_bound(const ErrorModel& model, std::span<const Complex> values, u32 level,
                        double scale, u64 slots) {
  double largest = 0.0;
  bool real = true;
  for (const Complex& v : values) {
    largest = std::max(largest, std::abs(v));
    real = real && v.imag() == 0.0;
  }
  return model.plaintext(largest, real, level, scale, slots);
}

std::pair<ErrorBound, ErrorBound> aligned(const BoundOperand& first, const BoundOperand& second) {
  ErrorBound a = first.reduced().bound(), b = second.reduced().bound();
  auto [x, y] = policy::align(ModelOps{first.model()}, a, b);
  return {x ? *x : a, y ? *y : b};
}

}  // namespace

BoundOperand BoundOperand::reduced() const {
  const auto a = policy::reduce(ModelOps{model_}, bound_);
  return a ? with(*a) : *this;
}

BoundOperand BoundOperand::add(const BoundOperand& b) const {
  if (b.bound_.components == 1) return with(model_.add(bound_, b.bound_));
  const auto [x, y] = aligned(*this, b);
  return with(model_.add(x, y));
}
BoundOperand BoundOperand::sub(const BoundOperand& b) const { return add(b); }
BoundOperand BoundOperand::add(Complex b) const { return with(model_.add(bound_, b)); }
BoundOperand BoundOperand::add(std::span<const Complex> values) const {
  return with(model_.add(bound_, vector_bound(model_, values, level(), scale(), slots())));
}

BoundOperand BoundOperand::multiply(const BoundOperand& b) const {
  if (b.bound_.components == 1)
    return with(
        policy::rescaled_product(ModelOps{model_}, model_.multiply(reduced().bound_, b.bound_)));
  const auto [x, y] = aligned(*this, b);
  return with(model_.multiply_rescale(x, y));
}

BoundOperand BoundOperand::multiply(Complex b) const {
  if (!policy::is_gaussian_integer(b)) return multiply_constant(b);
  const auto re = static_cast<i64>(b.real()), im = static_cast<i64>(b.imag());
  return with(model_.multiply_integer(reduced().bound_, re, im));
}

BoundOperand BoundOperand::multiply_constant(Complex b) const {
  return with(policy::rescaled_product(ModelOps{model_}, model_.multiply(reduced().bound_, b)));
}

BoundOperand BoundOperand::multiply(std::span<const Complex> values) const {
  const BoundOperand a = reduced();
  const double scale = policy::factor_scale(model_.params(), a.level(), a.scale());
  return a.multiply(with(vector_bound(model_, values, a.level(), scale, a.slots())));
}

BoundOperand BoundOperand::divide(Complex b) const {
  if (b == 0.0) policy::refuse_zero();
  if (!policy::is_gaussian_integer(1.0 / b)) policy::expect_division(model_.params(), level());
  return multiply(1.0 / b);
}
BoundOperand BoundOperand::divide(double b) const {
  if (b == 0.0) policy::refuse_zero();
  policy::expect_division(model_.params(), level());
  return multiply(1.0 / b);
}
BoundOperand BoundOperand::divide(std::span<const Complex> values) const {
  const std::vector<Complex> factors = policy::reciprocals(values);
  policy::expect_division(model_.params(), level());
  return multiply(std::span<const Complex>(factors));
}

BoundOperand BoundOperand::power(u64 exponent) const {
  return policy::power(model_.params(), exponent > 1 ? reduced() : *this, exponent);
}

std::vector<BoundOperand> BoundOperand::rotate_many(std::span<const i64> steps) const {
  std::vector<BoundOperand> out;
  for (ErrorBound& b : model_.rotate_many(bound_, steps)) out.push_back(with(std::move(b)));
  return out;
}

BoundOperand BoundOperand::rotate_sum(std::span<const i64> steps) const {
  return with(model_.rotate_sum(bound_, steps));
}

BoundOperand BoundOperand::sum(std::optional<u64> count, i64 stride) const {
  if (!count) count = policy::slots_at_stride(slots(), stride);
  return with(model_.sum_slots(bound_, *count, stride));
}

BoundOperand BoundOperand::polynomial(std::span<const double> coefficients, PolynomialBasis basis,
                                      double a, double b) const {
  return with(model_.polynomial(reduced().bound_, coefficients, basis, a, b));
}

}  // namespace crenel::ckks
