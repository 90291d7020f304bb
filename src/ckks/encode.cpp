#include "ckks/encode.h"

#include <cmath>
#include <limits>

#include "core/team.h"

namespace crenel::ckks {
namespace {

// Scaled coefficients must stay below Q/2 (or they wrap around) and below 2^62 (the integer type).
void round_coefficients(std::span<const double> coefficients, double scale, double log_q,
                        i64* out) {
  const double bound = std::exp2(std::min(62.0, log_q - 1.0));
  double largest = 0.0;
  for (double c : coefficients) {
    const double size =
        std::abs(c * scale);  // NaN when values overflow double precision on the way
    largest = std::isnan(size) ? std::numeric_limits<double>::infinity() : std::max(largest, size);
  }
  if (!(largest < bound))
    throw ParameterError(
        // Not how large: that tells of the message.
        cat("values overflow the modulus: a scaled coefficient is too large, expected all below 2^",
            std::log2(bound), " (scale 2^", std::log2(scale), ", log2 Q ", log_q, ")"),
        {{"scale", scale}, {"log2_bound", std::log2(bound)}});
  for (std::size_t i = 0; i < coefficients.size(); ++i)
    out[i] = std::llrint(coefficients[i] * scale);
}

// round(x * scale) as an integer; refuses what does not fit the modulus, without naming it.
i128 scaled_integer(double x, double scale, double log_q) {
  if (!std::isfinite(x))
    throw ParameterError("a constant is infinite or no number, expected finite numbers",
                         {{"expected", "finite numbers"}});
  const double v = x * scale, bits = std::min(120.0, log_q - 1.0);
  if (!std::isfinite(v) || std::abs(v) >= std::exp2(bits))
    throw ParameterError(
        cat("a constant at scale ", scale, " is too large for the level, expected at most ",
            std::exp2(bits) / scale, " (a product below 2^", bits, ")"),
        {{"scale", scale}, {"log2_bound", bits}});
  return static_cast<i128>(std::nearbyint(v));
}

}  // namespace

std::vector<i64> integer_coefficients(const Encoder& encoder,
                                      std::span<const std::complex<double>> values, u64 slots,
                                      u32 batch, double scale, double log_q) {
  const u64 n = encoder.ring_dim();
  std::vector<i64> coefficients(batch * n);
  core::loop_that_stops(batch > 1, batch, [&](u64 b) {
    const auto row = encoder.to_coefficients(values.subspan(b * slots, slots));
    round_coefficients(row, scale, log_q, coefficients.data() + b * n);
  });
  return coefficients;
}

rlwe::Poly to_polynomials(const rlwe::RingContext& ring, device::Stream& stream,
                          std::span<const i64> coefficients, u32 batch,
                          const ring::LimbSet& limbs) {
  device::Buffer staged = stream.allocate(coefficients.size_bytes(), true);
  stream.copy_in_secret(staged.data(), coefficients.data(), coefficients.size_bytes());
  rlwe::Poly poly(stream, {ring.log_n(), 1, batch}, limbs, ring::Domain::coeff);
  ring.kernels().reduce_signed(stream, poly.view(), staged.as<const i64>());
  ring.kernels().ntt(stream, poly.view_as(ring::Domain::eval), poly.view());
  poly.set_domain(ring::Domain::eval);
  return poly;
}

rlwe::Scalars constant_scalars(const Context::State& context, std::complex<double> b, double scale,
                               u32 level) {
  const double log_q = context.params.log_q(level);
  return context.ring->integer_scalars(context.ring->window(level),
                                       scaled_integer(b.real(), scale, log_q),
                                       scaled_integer(b.imag(), scale, log_q));
}

}  // namespace crenel::ckks
