// The policy of the convenient form: what is rescaled, aligned and encoded, and when.
#include "crenel/ckks/operand.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "ckks/evaluator_state.h"

namespace crenel::ckks {
namespace {

using Complex = std::complex<double>;

constexpr double kMaxInteger = 0x1p31;  // from here on a factor is encoded: noise grows with it

bool is_gaussian_integer(Complex z) {
  const auto integer = [](double x) { return std::abs(x) < kMaxInteger && std::trunc(x) == x; };
  return integer(z.real()) && integer(z.imag());
}

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
  const Evaluator& ev = evaluator_;
  const Params& params = ev.context().params();
  const auto excessive = [&](const Ciphertext& c) {
    return c.level() > 0 &&
           c.scale() > params.scale(c.level()) * std::exp2(0.5 * params.spec().log_scale);
  };
  if (ciphertext().components() > 2) return with(ev.relinearise(ciphertext())).reduced();
  if (!excessive(ciphertext())) return *this;
  Ciphertext c = ev.rescale(ciphertext());
  while (excessive(c)) c = ev.rescale(c);
  return with(std::move(c));
}

std::pair<Operand, Operand> Operand::aligned(const Operand& first, const Operand& second) {
  Operand a = first.reduced(), b = second.reduced();
  const auto lowered = [](const Operand& x, u32 level, double scale) {
    return x.with(x.evaluator_.adjust_level(x.ciphertext(), level, scale));
  };
  if (a.level() > b.level()) return {lowered(a, b.level(), b.scale()), b};
  if (b.level() > a.level()) return {a, lowered(b, a.level(), a.scale())};
  if (scales_agree(a.scale(), b.scale())) return {std::move(a), std::move(b)};
  if (a.level() == 0)
    throw StateError(cat("scales ", a.scale(), " and ", b.scale(), " differ at level 0"),
                     {{"scale", cat(a.scale())}, {"expected", cat(b.scale())}, {"level", "0"}});
  return {lowered(a, a.level() - 1, 0.0), lowered(b, b.level() - 1, 0.0)};
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
  double scale = 0.0;  // at level 0 the rescale will refuse
  if (a.level() > 0)
    scale = params.rescale_ratio(a.level()) * params.scale(a.level() - 1) / a.scale();
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
  return with(evaluator_.rescale(evaluator_.multiply(reduced().ciphertext(), b)));
}

Operand Operand::multiply(Complex b) const {
  if (!is_gaussian_integer(b)) return multiply_constant(b);
  const auto re = static_cast<i64>(b.real()), im = static_cast<i64>(b.imag());
  return with(evaluator_.multiply_integer(reduced().ciphertext(), re, im));
}

Operand Operand::multiply_constant(Complex b) const {
  return with(evaluator_.rescale(evaluator_.multiply(reduced().ciphertext(), b)));
}

Operand Operand::multiply(std::span<const double> b, u32 batch) const {
  return multiply_values(b, batch);
}
Operand Operand::multiply(std::span<const Complex> b, u32 batch) const {
  return multiply_values(b, batch);
}

namespace {

[[noreturn]] void refuse_zero() {
  throw ParameterError("division of a ciphertext by zero", {{"divisor", "0"}});
}

template <class T>
std::vector<T> reciprocals(std::span<const T> values) {
  std::vector<T> out;
  for (T v : values) {
    if (v == T(0)) refuse_zero();
    out.push_back(1.0 / v);
  }
  return out;
}

}  // namespace

Operand Operand::divide(double b) const {
  if (b == 0.0) refuse_zero();
  return multiply(1.0 / b);
}
Operand Operand::divide(Complex b) const {
  if (b == 0.0) refuse_zero();
  return multiply(1.0 / b);
}
Operand Operand::divide(std::span<const double> b, u32 batch) const {
  return multiply(std::span<const double>(reciprocals(b)), batch);
}
Operand Operand::divide(std::span<const Complex> b, u32 batch) const {
  return multiply(std::span<const Complex>(reciprocals(b)), batch);
}

Operand Operand::power(u64 exponent) const {
  if (exponent == 0)
    throw ParameterError("the exponent must be a positive integer, got 0", {{"exponent", "0"}});
  std::map<u64, Operand> powers{{1, *this}};
  const auto power = [&](const auto& self, u64 k) -> const Operand& {
    if (const auto it = powers.find(k); it != powers.end()) return it->second;
    const Operand& high = self(self, (k + 1) / 2);
    return powers.emplace(k, high.multiply(self(self, k / 2))).first->second;
  };
  return power(power, exponent);
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
  const u64 distance = stride < 0 ? u64(0) - static_cast<u64>(stride) : static_cast<u64>(stride);
  const u64 all = slots() / std::max<u64>(distance, 1);
  return with(evaluator_.sum_slots(ciphertext(), count.value_or(all), stride));
}

Operand Operand::at_level(u32 level) const {
  return with(evaluator_.adjust_level(ciphertext(), level));
}

Operand Operand::polynomial(std::span<const double> coefficients, PolynomialBasis basis, double a,
                            double b) const {
  return with(evaluator_.polynomial(reduced().ciphertext(), coefficients, basis, a, b));
}

}  // namespace crenel::ckks
