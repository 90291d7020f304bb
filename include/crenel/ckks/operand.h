// Operand: the convenient form, where levels and scales are handled.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>

#include "crenel/ckks/evaluator.h"

namespace crenel::ckks {

/// A ciphertext with the evaluator that computes on it. `x * y + 0.5` is written on top of the
/// explicit operations:
///   * products are rescaled at once, so that every operand sits at the canonical scale of its
///     level;
///   * operands at different levels are brought to the lower one first;
///   * a factor that is an integer, or a complex number whose parts are, repeats addition and
///     consumes no level; any other factor consumes one.
/// Immutable and cheap to copy (shared). Errors are those of the explicit operations.
class Operand {
 public:
  /// A ciphertext with the evaluator that its operations use.
  Operand(Evaluator evaluator, Ciphertext ciphertext);
  Operand(Evaluator evaluator, std::shared_ptr<const Ciphertext> ciphertext);

  /// What it holds, and what is known of the ciphertext.
  const Evaluator& evaluator() const { return evaluator_; }
  const Ciphertext& ciphertext() const { return *ciphertext_; }
  const std::shared_ptr<const Ciphertext>& shared_ciphertext() const { return ciphertext_; }
  u32 level() const { return ciphertext_->level(); }
  double scale() const { return ciphertext_->scale(); }
  u64 slots() const { return ciphertext_->slots(); }
  double bound() const { return ciphertext_->bound(); }

  // -- sums: the lower level of both, level l -> l with anything else
  Operand add(const Ciphertext& b) const;
  Operand add(const Operand& b) const { return add(b.ciphertext()); }
  Operand add(const Plaintext& b) const;
  Operand add(std::complex<double> b) const;
  /// Values, in rows where `batch` > 1, at this level and scale.
  Operand add(std::span<const double> b, u32 batch = 1) const;
  Operand add(std::span<const std::complex<double>> b, u32 batch = 1) const;
  /// As add, of what is subtracted; and the negative.
  Operand sub(const Ciphertext& b) const;
  Operand sub(const Operand& b) const { return sub(b.ciphertext()); }
  Operand sub(const Plaintext& b) const;
  Operand sub(std::complex<double> b) const { return add(-b); }
  Operand sub(std::span<const double> b, u32 batch = 1) const;
  Operand sub(std::span<const std::complex<double>> b, u32 batch = 1) const;
  Operand operator-() const;

  // -- products: level l -> l - 1, by integers l -> l
  Operand multiply(const Ciphertext& b) const;
  Operand multiply(const Operand& b) const { return multiply(b.ciphertext()); }
  Operand multiply(const Plaintext& b) const;
  template <std::floating_point T>
  Operand multiply(T b) const {
    return multiply_constant(static_cast<double>(b));
  }
  /// Integers of 2^31 and more are factors like any other number.
  template <std::integral T>
  Operand multiply(T b) const {
    return multiply(std::complex<double>(static_cast<double>(b)));
  }
  /// By a number, by values in rows where `batch` > 1, and by itself.
  Operand multiply(std::complex<double> b) const;
  Operand multiply(std::span<const double> b, u32 batch = 1) const;
  Operand multiply(std::span<const std::complex<double>> b, u32 batch = 1) const;
  Operand square() const { return multiply(ciphertext()); }
  /// By the reciprocal, level l -> l - 1. ParameterError for zero.
  Operand divide(double b) const;
  Operand divide(std::complex<double> b) const;
  Operand divide(std::span<const double> b, u32 batch = 1) const;
  Operand divide(std::span<const std::complex<double>> b, u32 batch = 1) const;
  /// Level l -> l - ceil(log2 exponent). ParameterError for 0.
  Operand power(u64 exponent) const;

  // -- slots: level l -> l
  /// As Evaluator::multiply_monomial: level and scale stay.
  Operand multiply_monomial(i64 power) const;
  /// As Evaluator's operations of the same names: KeyMissingError names what is missing.
  Operand rotate(i64 steps) const;
  std::vector<Operand> rotate_many(std::span<const i64> steps) const;
  Operand rotate_sum(std::span<const i64> steps) const;
  Operand conjugate() const;
  /// Slot i becomes the sum of `count` slots i, i + stride, ... (default: of all there are at this
  /// stride). Needs the rotations of sum_slots_rotations(count, stride).
  Operand sum(std::optional<u64> count = {}, i64 stride = 1) const;
  /// As Evaluator::with_slots.
  Operand with_slots(u64 slots, bool repeating = false) const;

  // -- levels and polynomials
  /// The same message at a lower level and its canonical scale.
  Operand at_level(u32 level) const;
  /// Level l -> l - polynomial_depth(degree), one lower for an interval other than [-1, 1].
  Operand polynomial(std::span<const double> coefficients,
                     PolynomialBasis basis = PolynomialBasis::power, double a = -1.0,
                     double b = 1.0) const;
  /// A product of the explicit form relinearised, and rescaled to an ordinary scale; itself where
  /// there is nothing to do. Every operation that multiplies or aligns does this first.
  Operand reduced() const;

 private:
  Operand multiply_constant(std::complex<double> b) const;
  Operand borrowed(const Ciphertext& b) const;
  Operand with(Ciphertext ciphertext) const { return {evaluator_, std::move(ciphertext)}; }
  /// Both at the lower of their levels and at one scale.
  static std::pair<Operand, Operand> aligned(const Operand& a, const Operand& b);
  template <class T>
  Plaintext term(std::span<const T> values, u32 batch) const;
  template <class T>
  Operand multiply_values(std::span<const T> values, u32 batch) const;

  Evaluator evaluator_;
  std::shared_ptr<const Ciphertext> ciphertext_;
};

/// What may stand beside an operand: ciphertexts, plaintexts, numbers, and vectors of them.
template <class T>
concept OperandTerm = std::same_as<T, Ciphertext> || std::same_as<T, Plaintext> ||
                      std::is_arithmetic_v<T> || std::same_as<T, std::complex<double>> ||
                      std::convertible_to<const T&, std::span<const double>> ||
                      std::convertible_to<const T&, std::span<const std::complex<double>>>;

/// The operations of the same meaning: add, sub, multiply, divide.
inline Operand operator+(const Operand& a, const Operand& b) { return a.add(b); }
inline Operand operator-(const Operand& a, const Operand& b) { return a.sub(b); }
inline Operand operator*(const Operand& a, const Operand& b) { return a.multiply(b); }
template <OperandTerm T>
Operand operator+(const Operand& a, const T& b) {
  return a.add(b);
}
template <OperandTerm T>
Operand operator+(const T& a, const Operand& b) {
  return b.add(a);
}
template <OperandTerm T>
Operand operator-(const Operand& a, const T& b) {
  return a.sub(b);
}
template <OperandTerm T>
Operand operator-(const T& a, const Operand& b) {
  return (-b).add(a);
}
template <OperandTerm T>
Operand operator*(const Operand& a, const T& b) {
  return a.multiply(b);
}
template <OperandTerm T>
Operand operator*(const T& a, const Operand& b) {
  return b.multiply(a);
}
template <OperandTerm T>
Operand operator/(const Operand& a, const T& b) {
  return a.divide(b);
}

}  // namespace crenel::ckks
