// The errors that a circuit leaves, from what the client knows: parameters, the circuit, bounds of
// the inputs. No keys, no device, nothing of a ciphertext that a server made.
#pragma once

#include <complex>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "crenel/ckks/evaluator.h"

namespace crenel::ckks {

/// What holds of a ciphertext (components 2 or 3) or a plaintext (1) of a circuit, whatever its
/// inputs are within their bounds, but for a probability of `failure`. Errors are in the unit of
/// the message.
struct ErrorBound {
  Metadata meta;
  u32 components = 2;
  std::string params_id;
  double message = 0.0;   ///< largest |slot| of the exact result
  double rms = 0.0;       ///< root mean square, over the slots, of the error
  double max = 0.0;       ///< largest |slot| of the error
  double ring = 0.0;      ///< the same over the whole ring, where slots do not fill it
  double variance = 0.0;  ///< expected mean square of the error were all errors independent: no
                          ///< bound, and not what a share's noise may rest on
  double failure = 0.0;   ///< probability, at most, that one of these bounds does not hold

  /// Of the metadata.
  u32 level() const { return meta.level; }
  double scale() const { return meta.scale; }
  u64 slots() const { return meta.slots; }
};

/// How an input of a circuit comes to be.
enum class Encryption : u8 { secret_key, public_key };

/// The operations of Evaluator on bounds: same names, levels, scales and refusals, so that a
/// circuit written once runs on both. Where a circuit adds errors that may be dependent, it adds
/// bounds, never variances (docs/theory/precision.md, "Bounds for results that are shared").
/// StateError where the message would not fit the modulus any more; UnsupportedError for what has
/// no model.
class ErrorModel {
 public:
  /// Of circuits of these parameters; no key and no device enters.
  explicit ErrorModel(const Params& params) : params_(params) {}
  const Params& params() const { return params_; }

  /// A fresh encryption of slots with |slot| <= max_abs (positive, finite); `real`: every slot is a
  /// real number. Level, scale and slots as in Context::encode. The values must not be what a
  /// decryption gave: their errors would be the message's then.
  ErrorBound input(double max_abs, bool real = false, std::optional<u32> level = {},
                   double scale = 0.0, u64 slots = 0,
                   Encryption encryption = Encryption::secret_key) const;
  /// An encoded vector. It belongs to the circuit: nobody chooses it by looking at ciphertexts.
  ErrorBound plaintext(double max_abs, bool real = false, std::optional<u32> level = {},
                       double scale = 0.0, u64 slots = 0) const;

  /// Operations of Evaluator of the same names: levels, scales and StateError as there.
  ErrorBound add(const ErrorBound& a, const ErrorBound& b) const;  ///< b: a plaintext as well
  ErrorBound sub(const ErrorBound& a, const ErrorBound& b) const;
  ErrorBound negate(const ErrorBound& a) const { return a; }
  ErrorBound add(const ErrorBound& a, std::complex<double> b) const;
  ErrorBound multiply_integer(const ErrorBound& a, i64 re, i64 im = 0) const;
  ErrorBound multiply_monomial(const ErrorBound& a, i64 power) const;
  ErrorBound multiply(const ErrorBound& a, const ErrorBound& b) const;  ///< b: a plaintext as well
  ErrorBound multiply(const ErrorBound& a, std::complex<double> b, double scale = 0.0) const;
  ErrorBound square(const ErrorBound& a) const { return multiply(a, a); }
  ErrorBound multiply_lazy(const ErrorBound& a, const ErrorBound& b) const;
  ErrorBound square_lazy(const ErrorBound& a) const { return multiply_lazy(a, a); }
  ErrorBound relinearise(const ErrorBound& a) const;
  ErrorBound multiply_rescale(const ErrorBound& a, const ErrorBound& b) const;
  ErrorBound relinearise_rescale(const ErrorBound& a) const;
  ErrorBound rescale(const ErrorBound& a) const;  ///< UnsupportedError for three components
  ErrorBound adjust_level(const ErrorBound& a, u32 level, double scale = 0.0) const;
  ErrorBound rotate(const ErrorBound& a, i64 steps) const;
  ErrorBound conjugate(const ErrorBound& a) const;
  std::vector<ErrorBound> rotate_many(const ErrorBound& a, std::span<const i64> steps) const;
  ErrorBound rotate_sum(const ErrorBound& a, std::span<const i64> steps) const;
  ErrorBound sum_slots(const ErrorBound& a, u64 count, i64 stride = 1) const;
  /// In more slots, errors beside the kept coefficients come into view: the bound is that of the
  /// whole ring.
  ErrorBound with_slots(const ErrorBound& a, u64 slots, bool repeating = false) const;
  /// |p(x)| is bounded by the sum of its terms. Chebyshev polynomials of real slots within the
  /// interval are at most 1; others grow fast, and so do their bounds.
  ErrorBound polynomial(const ErrorBound& x, std::span<const double> coefficients,
                        PolynomialBasis basis = PolynomialBasis::power, double a = -1.0,
                        double b = 1.0) const;

  /// For circuits of other files: `a` with errors added (rms, max, ring in the message's unit,
  /// variance in its square), at these metadata and this bound of the message. StateError where
  /// that does not fit the modulus.
  ErrorBound result(ErrorBound a) const;

 private:
  Params params_;
};

/// The convenient form of bounds, as Operand is that of ciphertexts: the same rules for levels and
/// scales.
class BoundOperand {
 public:
  /// A bound with the model that its operations go by.
  BoundOperand(ErrorModel model, ErrorBound bound)
      : model_(std::move(model)), bound_(std::move(bound)) {}
  /// What it holds, and what is known of the bound.
  const ErrorModel& model() const { return model_; }
  const ErrorBound& bound() const { return bound_; }
  u32 level() const { return bound_.level(); }
  double scale() const { return bound_.scale(); }
  u64 slots() const { return bound_.slots(); }

  /// Operations of Operand of the same names: rules for levels and scales, and errors, as there.
  BoundOperand add(const BoundOperand& b) const;
  BoundOperand sub(const BoundOperand& b) const;
  BoundOperand add(std::complex<double> b) const;
  BoundOperand sub(std::complex<double> b) const { return add(-b); }
  BoundOperand add(std::span<const std::complex<double>> values) const;
  BoundOperand operator-() const { return *this; }
  BoundOperand multiply(const BoundOperand& b) const;
  template <std::floating_point T>
  BoundOperand multiply(T b) const {
    return multiply_constant(static_cast<double>(b));
  }
  template <std::integral T>
  BoundOperand multiply(T b) const {
    return multiply(std::complex<double>(static_cast<double>(b)));
  }
  BoundOperand multiply(std::complex<double> b) const;
  BoundOperand multiply(std::span<const std::complex<double>> values) const;
  BoundOperand square() const { return multiply(*this); }
  BoundOperand divide(std::complex<double> b) const;
  BoundOperand divide(double b) const;
  BoundOperand divide(std::span<const std::complex<double>> values) const;
  BoundOperand power(u64 exponent) const;
  BoundOperand multiply_monomial(i64 power) const {
    return with(model_.multiply_monomial(bound_, power));
  }
  BoundOperand rotate(i64 steps) const { return with(model_.rotate(bound_, steps)); }
  std::vector<BoundOperand> rotate_many(std::span<const i64> steps) const;
  BoundOperand rotate_sum(std::span<const i64> steps) const;
  BoundOperand conjugate() const { return with(model_.conjugate(bound_)); }
  BoundOperand sum(std::optional<u64> count = {}, i64 stride = 1) const;
  BoundOperand with_slots(u64 slots, bool repeating = false) const {
    return with(model_.with_slots(bound_, slots, repeating));
  }
  BoundOperand at_level(u32 level) const { return with(model_.adjust_level(bound_, level)); }
  BoundOperand polynomial(std::span<const double> coefficients,
                          PolynomialBasis basis = PolynomialBasis::power, double a = -1.0,
                          double b = 1.0) const;
  BoundOperand reduced() const;

 private:
  BoundOperand with(ErrorBound bound) const { return {model_, std::move(bound)}; }
  BoundOperand multiply_constant(std::complex<double> b) const;

  ErrorModel model_;
  ErrorBound bound_;
};

/// What may stand beside a bound.
template <class T>
concept BoundTerm = std::is_arithmetic_v<T> || std::same_as<T, std::complex<double>> ||
                    std::convertible_to<const T&, std::span<const std::complex<double>>>;

/// As Operand's: add, sub and multiply.
inline BoundOperand operator+(const BoundOperand& a, const BoundOperand& b) { return a.add(b); }
inline BoundOperand operator-(const BoundOperand& a, const BoundOperand& b) { return a.sub(b); }
inline BoundOperand operator*(const BoundOperand& a, const BoundOperand& b) {
  return a.multiply(b);
}
template <BoundTerm T>
BoundOperand operator+(const BoundOperand& a, const T& b) {
  return a.add(b);
}
template <BoundTerm T>
BoundOperand operator+(const T& a, const BoundOperand& b) {
  return b.add(a);
}
template <BoundTerm T>
BoundOperand operator-(const BoundOperand& a, const T& b) {
  return a.add(b);  // the bounds of a sum are those of a difference
}
template <BoundTerm T>
BoundOperand operator-(const T& a, const BoundOperand& b) {
  return b.add(a);
}
template <BoundTerm T>
BoundOperand operator*(const BoundOperand& a, const T& b) {
  return a.multiply(b);
}
template <BoundTerm T>
BoundOperand operator*(const T& a, const BoundOperand& b) {
  return b.multiply(a);
}

}  // namespace crenel::ckks
