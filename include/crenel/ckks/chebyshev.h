// Functions that are no polynomials, by Chebyshev series on an interval.
#pragma once

#include "crenel/ckks/operand.h"

namespace crenel::ckks {

/// The polynomial that agrees with a function in degree + 1 Chebyshev nodes of an interval, and how
/// far it is from the function there. Outside the interval it grows without bound.
class ChebyshevFit {
 public:
  /// ParameterError for an empty interval, degrees above 65536, and values of f that are not
  /// finite; what f throws comes through.
  ChebyshevFit(const std::function<double(double)>& f, double a, double b, u32 degree);

  /// Of T_0, T_1, ..., as Evaluator::polynomial takes them.
  const std::vector<double>& coefficients() const { return coefficients_; }
  /// The interval.
  double a() const { return a_; }
  double b() const { return b_; }
  /// Largest distance from the function on the interval, measured on a dense grid; the errors of
  /// encryption come on top.
  double error() const { return error_; }
  u32 degree() const;  ///< without trailing zeros
  u32 depth() const;   ///< levels that a call consumes: one more for intervals other than [-1, 1]

  double clear(double x) const;  ///< of a number in the clear
  /// Of every slot. Level l -> l - depth(), scale -> canonical; StateError names both levels when
  /// there are too few.
  Ciphertext operator()(const Evaluator& evaluator, const Ciphertext& x) const;
  Operand operator()(const Operand& x) const;

 private:
  std::vector<double> coefficients_;
  double a_, b_;
  double error_ = 0.0;
};

}  // namespace crenel::ckks
