#include "ring/fft.h"

#include <cmath>

#include "crenel/core/error.h"

namespace crenel::ring {
namespace {

// Sines and cosines by integer arithmetic: a table must not depend on the C library's rounding.
// Fixed point with kFraction bits; the error, below 2^-115, is far under that of the final double.
constexpr int kFraction = 120;
constexpr u128 kOne = u128(1) << kFraction;

// Pi / 4 with 128 fractional bits.
constexpr u128 kQuarterPi = u128(0xC90FDAA22168C234u) << 64 | 0xC4C6628B80DC1CD1u;

// a b for a, b <= 1.
u128 times(u128 a, u128 b) {
  const u64 a0 = static_cast<u64>(a), a1 = static_cast<u64>(a >> 64);
  const u64 b0 = static_cast<u64>(b), b1 = static_cast<u64>(b >> 64);
  const u128 cross0 = static_cast<u128>(a0) * b1, cross1 = static_cast<u128>(a1) * b0;
  const u128 middle =
      (static_cast<u128>(a0) * b0 >> 64) + static_cast<u64>(cross0) + static_cast<u64>(cross1);
  const u128 high = static_cast<u128>(a1) * b1 + (cross0 >> 64) + (cross1 >> 64) + (middle >> 64);
  return high << (128 - kFraction) | static_cast<u64>(middle) >> (kFraction - 64);
}

double to_double(u128 x) { return std::ldexp(static_cast<double>(x), -kFraction); }

// cos x + i sin x for x = pi numerator / (4 * 2^log_denominator) in [0, pi / 4], by Taylor's
// series.
Complex unit_root(u32 numerator, u32 log_denominator) {
  const u128 unit = kQuarterPi >> (128 - kFraction);
  const u128 x = (unit >> log_denominator) * numerator;
  u128 sum[2] = {kOne, x};  // cosine, sine: every second term each, with alternating signs
  u128 term = x;
  for (u32 k = 2; term != 0; ++k) {
    term = times(term, x) / k;
    sum[k % 2] = k / 2 % 2 ? sum[k % 2] - term : sum[k % 2] + term;
  }
  return {to_double(sum[0]), to_double(sum[1])};
}

}  // namespace

std::vector<Complex> roots_of_unity(u32 log_order) {
  if (log_order < 3) {  // no octant: some of the eighth roots
    const std::vector<Complex> eighth = roots_of_unity(3);
    std::vector<Complex> few;
    for (u32 j = 0; j < u32(1) << log_order; ++j) few.push_back(eighth[j << (3 - log_order)]);
    return few;
  }
  const u32 n = u32(1) << (log_order - 1);
  std::vector<Complex> roots(2 * u64(n));
  std::vector<Complex> octant(n / 4 + 1);
  for (u32 j = 0; j <= n / 4; ++j) octant[j] = unit_root(j, log_order - 3);
  for (u32 j = 0; j < 2 * n; ++j) {
    // the first octant, mirrored at pi / 4 and turned by quarters
    const u32 quarter = j / (n / 2), rest = j % (n / 2);
    const bool mirrored = rest > n / 4;
    Complex z = octant[mirrored ? n / 2 - rest : rest];
    if (mirrored) z = {z.im, z.re};
    for (u32 turn = 0; turn < quarter; ++turn) z = {-z.im, z.re};
    roots[j] = {z.re + 0.0, z.im + 0.0};  // no negative zeros
  }
  return roots;
}

NegacyclicFft::NegacyclicFft(u32 log_degree) : log_n(log_degree) {
  if (log_n < 3 || log_n > 12)
    throw ParameterError(cat("log_n = ", log_n, ", expected 3..12"), {{"log_n", log_n}});
  const u32 n = u32(1) << log_n, m = n / 2;
  roots = roots_of_unity(log_n + 1);
  // angle[b] of zeta(d, b), in units of pi / n, by halving from the top
  twiddles.resize(m);
  std::vector<u32> angle{n / 2};
  for (u32 width = 1; width < m; width *= 2) {
    std::vector<u32> next(2 * width);
    for (u32 b = 0; b < width; ++b) {
      next[2 * b] = angle[b] / 2;
      next[2 * b + 1] = angle[b] / 2 + n;
      twiddles[width + b] = roots[next[2 * b]];
    }
    angle = std::move(next);
  }
  exponents = std::move(angle);
}

}  // namespace crenel::ring
