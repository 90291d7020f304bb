// The canonical embedding: slots to real polynomial coefficients and back, in double precision.
#pragma once

#include <complex>
#include <span>
#include <vector>

#include "crenel/core/types.h"

namespace crenel::ckks {

/// Slot j of a polynomial m is m(zeta^(5^j)), zeta = exp(2 pi i / 2N). Vectors of n < N/2 slots (a
/// power of two) live in the subring of X^(N/2n), where they repeat through the full vector.
class Encoder {
 public:
  explicit Encoder(u32 log_n);

  u64 ring_dim() const { return u64(1) << log_n_; }
  /// Slots (n of them) to the N real coefficients of the interpolating polynomial.
  std::vector<double> to_coefficients(std::span<const std::complex<double>> slots) const;
  /// N real coefficients to the first `slots` slots of a polynomial of that subring.
  std::vector<std::complex<double>> to_slots(std::span<const double> coefficients, u64 slots) const;

 private:
  void transform(std::vector<std::complex<double>>& values) const;
  void inverse_transform(std::vector<std::complex<double>>& values) const;

  u32 log_n_;
  std::vector<std::complex<double>> roots_;  ///< [k] = zeta^k, k in [0, 2N)
  std::vector<u32> power_of_five_;           ///< [j] = 5^j mod 2N
};

}  // namespace crenel::ckks
