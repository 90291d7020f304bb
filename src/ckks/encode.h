// From slots to polynomials on any limbs.
#pragma once

#include "ckks/objects.h"

namespace crenel::ckks {

/// Scaled and rounded coefficients of the rows of a batch; ParameterError where one reaches 2^62 or
/// 2^(log_q - 1), or is not a number. `slots` values a row (the encoder's vector length).
std::vector<i64> integer_coefficients(const Encoder& encoder,
                                      std::span<const std::complex<double>> values, u64 slots,
                                      u32 batch, double scale, double log_q);

/// The polynomials with these coefficients (batch rows of N) on `limbs`, evaluation form. The
/// staging memory is wiped: messages may be secret.
rlwe::Poly to_polynomials(const rlwe::RingContext& ring, device::Stream& stream,
                          std::span<const i64> coefficients, u32 batch, const ring::LimbSet& limbs);

/// The complex constant b at this scale, for every limb of the window of `level`. ParameterError
/// where it is no number or does not fit the level.
rlwe::Scalars constant_scalars(const Context::State& context, std::complex<double> b, double scale,
                               u32 level);

}  // namespace crenel::ckks
