// Norms of error polynomials that hold with a probability of 1 - 2^-128 each, from the variances of
// ckks/noise.h (docs/theory/precision.md, "Bounds for results that are shared").
//
// Secrets (ternary), errors (centred binomials), masks, and sums of uniform numbers are subgaussian
// with their variance as the proxy: E exp(t x) <= exp(v t^2 / 2). For a vector x of such numbers
// (HKZ12)   P( |A x|^2 > v (tr S + 2 sqrt(tr(S^2) u) + 2 |S| u) ) <= exp(-u),   S = A^T A.
#pragma once

#include "crenel/ckks/error_model.h"

namespace crenel::ckks {

/// Of an error polynomial, in units of its coefficients. "Kept" are the 2 * slots coefficients that
/// decoding reads; they are a polynomial in X^(N / (2 slots)).
struct Norms {
  double rms = 0.0;          ///< 2-norm of the kept coefficients = root mean square over the slots
  double max = 0.0;          ///< largest slot of the kept polynomial
  double ring = 0.0;         ///< largest value of the whole polynomial at the N roots
  double mean_square = 0.0;  ///< expected, over the slots, with independent errors: no bound
};
Norms operator+(const Norms& a, const Norms& b);
Norms operator*(double factor, const Norms& a);

/// 2^-128: of one bound.
inline constexpr double kBoundFailure = 0x1p-128;

/// The norms of one parameter set's errors in vectors of `slots` slots.
class NormBounds {
 public:
  NormBounds(const Params& params, u64 slots);

  /// Independent coefficients of variance v.
  Norms noise(double v) const;
  /// Rounding of real coefficients of the kept polynomial to integers, whatever they are.
  Norms rounding() const;
  Norms secret_key_encryption() const;
  Norms public_key_encryption() const;
  /// Of a ciphertext of two components, by the product of k primes.
  Norms division() const;
  /// Before the division by P, in units after it.
  Norms gadget(u32 level) const;
  Norms key_switch(u32 level) const;
  /// ModDown and the rescale from `level` in one division; units after the rescale.
  Norms merged(u32 level) const;

 private:
  /// A random polynomial that others are multiplied with.
  struct Factor {
    double weight;  ///< squared 2-norm
    double kept;    ///< mean of |x|^2 over the roots that fall on one of the kept polynomial
    double ring;    ///< largest |x|^2 at a root
    double variance;
  };
  Factor factor(double v) const;
  Factor secret() const;
  /// x y for independent coefficients of y of variance v.
  Norms times(const Factor& x, double v) const;

  Params params_;
  double n_, kept_;
};

/// a with errors on top, in the unit of its message.
ErrorBound with_errors(ErrorBound a, const Norms& errors);

}  // namespace crenel::ckks
