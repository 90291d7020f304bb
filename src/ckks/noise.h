// Variances of the errors of CKKS operations, as formulas (docs/theory/precision.md), in units of
// one coefficient of the polynomial at its scale.
//
// Notation: N ring degree; h nonzero coefficients of the secret (+-1 each); sigma^2 error variance;
// alpha special primes; P their product; D_d product of the alpha_d primes of digit d.
//
// Centred base conversion is what all divisions and ModUps rest on (rns/tables.h): from the
// residues of x modulo d_1 .. d_k it makes the integer
//     r = sum_j y_j (D / d_j),  y_j = centred([x (D/d_j)^-1]_(d_j)) in [-(d_j - 1)/2, (d_j - 1)/2],
// which is x modulo D but not reduced: r / D = sum_j y_j / d_j. For x uniform modulo D the y_j /
// d_j are independent and uniform on (-1/2, 1/2), so r / D has mean 0 and variance k/12 (relative
// deviation d_j^-2 < 2^-38). A digit of ModUp is this r. A division by D takes off the multiple of
// D nearest to r: its error is uniform on (-1/2, 1/2), of variance 1/12 for any k. The quotient is
// an integer by construction.
//
// A ciphertext (b, a) is uniform modulo any prime. Decryption takes r_b + r_a s: a coefficient of
// r_a s is a signed sum of h independent ones, r_b is (up to a shift) the centred fraction of that
// sum, whose spread is many units, hence independent of it: (1 + h) / 12.
#pragma once

#include <algorithm>
#include <cmath>

#include "crenel/ckks/params.h"

namespace crenel::ckks::noise {

/// Centred binomial of 21 pairs of coins: 42 coins of variance 1/4.
inline constexpr double kErrorVariance = 10.5;
/// Ternary with P(+-1) = 1/4: variance of the mask of public-key encryption.
inline constexpr double kTernaryVariance = 0.5;
/// Rounding a real coefficient to an integer.
inline constexpr double kRounding = 1.0 / 12.0;

/// Division of a ciphertext by any number of primes.
inline double division(double h) { return (1.0 + h) / 12.0; }

/// dec - m = e v + e0 + e1 s with v ternary.
inline double public_key(double n, double h) {
  return kErrorVariance * (n * kTernaryVariance + 1.0 + h);
}

/// Variance of the digits of a uniform polynomial, summed over digits and divided by P^2: every
/// digit coefficient is the unreduced r above, of variance D_d^2 alpha_d / 12. The first block of
/// digits has `lead` primes fewer than the others.
inline double digits(const Params& p, u32 level, u32 lead) {
  double sum = 0.0, log_digit = 0.0;
  u32 limbs = 0;
  for (u32 id = p.window_begin(level), end = p.window_end(level); id < end; ++id) {
    log_digit += std::log2(static_cast<double>(p.primes()[id]));
    ++limbs;
    if (id + 1 < end && (id + 1 + lead) % p.alpha() != 0) continue;
    sum += limbs / 12.0 * std::exp2(2 * (log_digit - p.log_p()));
    log_digit = 0.0, limbs = 0;
  }
  return sum;
}

/// Of an aligned level, whose keys may be of either kind: the larger.
inline double digits(const Params& p, u32 level) {
  const double plain = digits(p, level, 0);
  if (p.highest_aligned(level) != level) return plain;
  return std::max(plain, digits(p, level, p.alpha() - p.window_begin(level) % p.alpha()));
}

/// Error of sum_d digit_d key_d before the division, already divided by P: every digit coefficient
/// meets N key errors.
inline double gadget(const Params& p, u32 level) {
  return static_cast<double>(p.ring_dim()) * kErrorVariance * digits(p, level);
}

/// One key switch: the gadget term and one ModDown.
inline double key_switch(const Params& p, u32 level, double h) {
  return gadget(p, level) + division(h);
}

/// ModDown and rescale in one division: one rounding.
inline double merged(const Params& p, u32 level, double h) {
  const double ratio = p.rescale_ratio(level);
  return gadget(p, level) / (ratio * ratio) + division(h);
}

/// Tensor product of m1 + e1 and m2 + e2; norms are sums of squared coefficients.
inline double product(double norm1, double norm2, double var1, double var2, double n) {
  return norm1 * var2 + norm2 * var1 + n * var1 * var2;
}

/// Coefficient variance to the mean square of the (complex) slot errors.
inline double slot_variance(double coefficient_variance, double n, double scale) {
  return n * coefficient_variance / (scale * scale);
}

}  // namespace crenel::ckks::noise
