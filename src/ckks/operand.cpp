// The convenient form of ciphertexts; its policy is in ckks/operand_policy.h.
#include "crenel/ckks/operand.h"

#include "ckks/operand_policy.h"
#include "ckks/polynomial.h"

namespace crenel::ckks {
namespace {

using Complex = std::complex<double>;

}  // namespace

Operand::Operand(Evaluator evaluator, Ciphertext ciphertext)
    : Operand(std::move(evaluator), std::make_shared<const Ciphertext>(std::move(ciphertext))) {}
Operand::Operand(Evaluator evaluator, std::shared_ptr<const Ciphertext> ciphertext)
    : evaluator_(std::move(evaluator)), ciphertext_(std::move(ciphertext)) {}

// For the time of one call: it must not outlive `b`.
Operand Operand::borrowed(const Ciphertext& b) const {
  return {evaluator_, std::shared_ptr<const Ciphertext>(std::shared_ptr<void>(), &b)};
}

Operand Operand::reduced() const {
  auto c = policy::reduce(CiphertextOps{evaluator_}, ciphertext());
  return c ? with(std::move(*c)) : *this;
}

std::pair<Operand, Operand> Operand::aligned(const Operand& first, const Operand& second) {
  Operand a = first.reduced(), b = second.reduced();
  auto [x, y] = policy::align(CiphertextOps{a.evaluator_}, a.ciphertext(), b.ciphertext());
  if (x) a = a.with(std::move(*x));
  if (y) b = b.with(std::move(*y));
  return {std::move(a), std::move(b)};
}

// Values as a summand: at the level and scale of this operand.
template <class T>
Plaintext Operand::term(std::span<const T> values, u32 batch) const {
  return evaluator_.context().encode(values, level(), scale(), slots(), batch);
}

// As a factor: at the scale with which the rescaled product is canonical.
template <class T>
Operand Operand::multiply_values(std::span<const T> values, u32 batch) const {
  const Operand a = reduced();
  const Context& context = evaluator_.context();
  const Params& params = context.params();
  const double scale = policy::factor_scale(params, a.level(), a.scale());
  return a.multiply(context.encode(values, a.level(), scale, a.slots(), batch));
}

Operand Operand::add(const Ciphertext& b) const {
  const auto [x, y] = aligned(*this, borrowed(b));
  return with(evaluator_.add(x.ciphertext(), y.ciphertext()));
}
Operand Operand::sub(const Ciphertext& b) const {
  const auto [x, y] = aligned(*this, borrowed(b));
  return with(evaluator_.sub(x.ciphertext(), y.ciphertext()));
}
Operand Operand::add(const Plaintext& b) const { return with(evaluator_.add(ciphertext(), b)); }
Operand Operand::sub(const Plaintext& b) const { return with(evaluator_.sub(ciphertext(), b)); }
Operand Operand::add(Complex b) const { return with(evaluator_.add(ciphertext(), b)); }
Operand Operand::add(std::span<const double> b, u32 batch) const { return add(term(b, batch)); }
Operand Operand::add(std::span<const Complex> b, u32 batch) const { return add(term(b, batch)); }
Operand Operand::sub(std::span<const double> b, u32 batch) const { return sub(term(b, batch)); }
Operand Operand::sub(std::span<const Complex> b, u32 batch) const { return sub(term(b, batch)); }
Operand Operand::operator-() const { return with(evaluator_.negate(ciphertext())); }

Operand Operand::multiply(const Ciphertext& b) const {
  if (&b == ciphertext_.get()) {  // a square: reduced once
    const Operand a = reduced();
    return with(evaluator_.multiply_rescale(a.ciphertext(), a.ciphertext()));
  }
  const auto [x, y] = aligned(*this, borrowed(b));
  return with(evaluator_.multiply_rescale(x.ciphertext(), y.ciphertext()));
}

Operand Operand::multiply(const Plaintext& b) const {
  const CiphertextOps ops{evaluator_};
  return with(policy::rescaled_product(ops, evaluator_.multiply(reduced().ciphertext(), b)));
}

Operand Operand::multiply(Complex b) const {
  if (!policy::is_gaussian_integer(b)) return multiply_constant(b);
  const auto re = static_cast<i64>(b.real()), im = static_cast<i64>(b.imag());
  return with(evaluator_.multiply_integer(reduced().ciphertext(), re, im));
}

Operand Operand::multiply_constant(Complex b) const {
  const CiphertextOps ops{evaluator_};
  return with(policy::rescaled_product(ops, evaluator_.multiply(reduced().ciphertext(), b)));
}

Operand Operand::multiply(std::span<const double> b, u32 batch) const {
  return multiply_values(b, batch);
}
Operand Operand::multiply(std::span<const Complex> b, u32 batch) const {
  return multiply_values(b, batch);
}

Operand Operand::divide(double b) const {
  if (b == 0.0) policy::refuse_zero();
  policy::expect_division(evaluator_.context().params(), level());
  return multiply(1.0 / b);
}
Operand Operand::divide(Complex b) const {
  if (b == 0.0) policy::refuse_zero();
  if (!policy::is_gaussian_integer(1.0 / b))
    policy::expect_division(evaluator_.context().params(), level());
  return multiply(1.0 / b);
}
Operand Operand::divide(std::span<const double> b, u32 batch) const {
  const std::vector<double> factors = policy::reciprocals(b);
  policy::expect_division(evaluator_.context().params(), level());
  return multiply(std::span<const double>(factors), batch);
}
Operand Operand::divide(std::span<const Complex> b, u32 batch) const {
  const std::vector<Complex> factors = policy::reciprocals(b);
  policy::expect_division(evaluator_.context().params(), level());
  return multiply(std::span<const Complex>(factors), batch);
}

Operand Operand::power(u64 exponent) const {
  return policy::power(evaluator_.context().params(), exponent > 1 ? reduced() : *this, exponent);
}

Operand Operand::multiply_monomial(i64 power) const {
  return with(evaluator_.multiply_monomial(ciphertext(), power));
}

Operand Operand::rotate(i64 steps) const { return with(evaluator_.rotate(ciphertext(), steps)); }

std::vector<Operand> Operand::rotate_many(std::span<const i64> steps) const {
  std::vector<Operand> out;
  for (Ciphertext& c : evaluator_.rotate_many(ciphertext(), steps))
    out.push_back(with(std::move(c)));
  return out;
}

Operand Operand::rotate_sum(std::span<const i64> steps) const {
  return with(evaluator_.rotate_sum(ciphertext(), steps));
}

Operand Operand::conjugate() const { return with(evaluator_.conjugate(ciphertext())); }

Operand Operand::sum(std::optional<u64> count, i64 stride) const {
  if (!count) count = policy::slots_at_stride(slots(), stride);
  return with(evaluator_.sum_slots(ciphertext(), *count, stride));
}

Operand Operand::with_slots(u64 slots, bool repeating) const {
  return with(evaluator_.with_slots(ciphertext(), slots, repeating));
}

Operand Operand::at_level(u32 level) const {
  return with(evaluator_.adjust_level(ciphertext(), level));
}

Operand Operand::polynomial(std::span<const double> coefficients, PolynomialBasis basis, double a,
                            double b) const {
  return with(evaluator_.polynomial(reduced().ciphertext(), coefficients, basis, a, b));
}

}  // namespace crenel::ckks
