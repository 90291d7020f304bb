#include "tfhe/params/security.h"

#include <algorithm>

namespace crenel::tfhe {

double security_estimate(double dim, double log_modulus) {
  constexpr double kBits = 128.0, kRatio = 38.45, kSlope = 3.45;
  return std::max(0.0, kBits + kSlope * (dim / log_modulus - kRatio));
}

double binary_security_estimate(double dim, double log_modulus) {
  constexpr double kBits = 128.0, kSlope = 3.25, kRatio = 38.6, kExtra = 46.0;
  return std::max(0.0, kBits + kSlope * ((dim - kExtra) / log_modulus - kRatio));
}

double security_estimate(const Spec& spec) {
  // the switching key hides the accumulator's secret under the LWE secret, modulo Q_KS >= q
  const double n = spec.lwe_dim.value, log_switch = spec.log_switch_modulus;
  const double lwe = spec.secret == LweSecret::binary ? binary_security_estimate(n, log_switch)
                                                      : security_estimate(n, log_switch);
  const double extracted = static_cast<double>(spec.glwe_dim.value) * spec.poly_size.value;
  const u32 log_key = std::max(spec.log_modulus, spec.log_raised_modulus);
  return std::min(lwe, security_estimate(extracted, log_key));
}

}  // namespace crenel::tfhe
