// The message-dependent part: how far sin(2 pi x) / 2 pi is from x, in slots.
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "circuits/bootstrapping/precision.h"

namespace crenel::circuits {
namespace {

constexpr double kPi = std::numbers::pi;
/// Up to here messages are drawn and embedded; beyond, coefficients are Gaussian to high accuracy.
constexpr u64 kSmall = 32;
constexpr u32 kDraws = 1024;

struct Error {
  double ratio;  ///< 2^rho
  u32 arcsine_degree;
  /// Error of a coefficient of size c, in the message's unit.
  double operator()(double c) const { return ratio * modular_error(c / ratio, arcsine_degree); }
};

/// Tail P(|a z + w| > t) averaged over the slots z; w Gaussian, real or complex.
double tail(double t, double a, double noise, double bound, bool complex_slots) {
  constexpr int kGrid = 16, kAngles = 32;
  double sum = 0.0;
  if (!complex_slots) {
    for (int i = 0; i < 4 * kGrid; ++i) {
      const double z = bound * ((i + 0.5) / (2 * kGrid) - 1);
      sum += std::erfc((t - a * z) / (std::sqrt(2.0) * noise));
    }
    return sum / (4 * kGrid);
  }
  for (int i = 0; i < kGrid; ++i)
    for (int j = 0; j <= i; ++j) {  // one octant of the square, its diagonal once
      const double r = a * bound * std::hypot(i + 0.5, j + 0.5) / kGrid, weight = i == j ? 1 : 2;
      if (r >= t) {
        sum += weight;
        continue;
      }
      // The point a z lies inside the circle of radius t; |w| is a Rayleigh variable that must pass
      // the distance to the circle in its direction.
      double inside = 0.0;
      for (int k = 0; k < kAngles; ++k) {
        const double phi = 2 * kPi * k / kAngles, s = r * std::sin(phi);
        const double d = std::sqrt(t * t - s * s) - r * std::cos(phi);
        inside += std::exp(-d * d / (noise * noise));
      }
      sum += weight * inside / kAngles;
    }
  return sum / (kGrid * kGrid);
}

/// Median of the largest of `slots` such values.
double largest(double a, double noise, double bound, bool complex_slots, u64 slots) {
  const double z = complex_slots ? std::sqrt(2.0) * bound : bound;
  double low = 0.0, high = a * z + 12 * noise;
  for (int i = 0; i < 40; ++i) {
    const double mid = 0.5 * (low + high);
    const bool more = tail(mid, a, noise, bound, complex_slots) * double(slots) > std::numbers::ln2;
    (more ? low : high) = mid;
  }
  return high;
}

// Coefficients of random slots are independent Gaussians of variance E|z|^2 / d, d = 2 * slots, by
// the central limit. Split the error g(m) = -a m + rest with E[m rest] = 0: the first part is the
// message again, the rest is noise in the slots.
SlotError random_slots(const Error& g, double bound, bool complex_slots, u64 slots) {
  const double d = 2.0 * static_cast<double>(slots);
  const double power = (complex_slots ? 2.0 : 1.0) / 3.0 * bound * bound;
  const double sigma = std::sqrt(power / d);
  double linear = 0.0, square = 0.0;
  constexpr double kStep = 1.0 / 16;  // the trapezoidal rule is exact here for all that matters
  for (int step = -12 * 16; step <= 12 * 16; ++step) {
    const double u = kStep * step;
    const double e = g(sigma * u);
    const double p = kStep * std::exp(-u * u / 2) / std::sqrt(2 * kPi);
    linear += p * e * u / sigma;
    square += p * e * e;
  }
  const double noise = std::sqrt(d * std::max(0.0, square - linear * linear * sigma * sigma));
  return {std::sqrt(d * square), largest(std::abs(linear), noise, bound, complex_slots, slots)};
}

class Draw {
 public:
  double uniform() {  // splitmix64: fixed, so that the model is a function
    state_ += 0x9E3779B97F4A7C15u;
    u64 z = (state_ ^ (state_ >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-52 - 1.0;
  }

 private:
  u64 state_ = 1;
};

// Few slots: draws, through the embedding m_k = (2 / d) Re sum_j z_j zeta_j^-k. Any half of the
// roots without conjugates will do as zeta_j, since the slots are independent.
SlotError drawn_slots(const Error& g, double mean, double bound, bool complex_slots, u64 slots) {
  using Complex = std::complex<double>;
  const u64 d = 2 * slots;
  Draw draw;
  const auto root = [&](u64 j, u64 k) {
    return std::polar(1.0, kPi * static_cast<double>((2 * j + 1) * k % (2 * d)) / double(d));
  };
  double square = 0.0, max = 0.0;
  std::vector<Complex> roots(slots * d), z(slots), out(slots);
  for (u64 j = 0; j < slots; ++j)
    for (u64 k = 0; k < d; ++k) roots[j * d + k] = root(j, k);
  for (u32 i = 0; i < kDraws; ++i) {
    for (auto& x : z) {
      const double re = draw.uniform(), im = draw.uniform();
      x = mean + bound * Complex(re, complex_slots ? im : 0.0);
    }
    std::fill(out.begin(), out.end(), Complex{});
    for (u64 k = 0; k < d; ++k) {
      double c = 0.0;
      for (u64 j = 0; j < slots; ++j) c += std::real(z[j] * std::conj(roots[j * d + k]));
      const double e = g(2 * c / static_cast<double>(d));
      for (u64 j = 0; j < slots; ++j) out[j] += e * roots[j * d + k];
    }
    double worst = 0.0;
    for (const auto& x : out) {
      square += std::norm(x);
      worst = std::max(worst, std::abs(x));
    }
    max += worst;
  }
  return {std::sqrt(square / kDraws / double(slots)), max / kDraws};
}

/// Slots uniform around the real number `mean`.
SlotError random_message(const Error& g, double mean, double bound, bool complex_slots, u64 slots) {
  if (slots <= kSmall) return drawn_slots(g, mean, bound, complex_slots, slots);
  const SlotError random = random_slots(g, bound, complex_slots, slots);
  // The mean is one large coefficient: the same error in every slot.
  const double common = std::abs(g(mean));
  return {std::hypot(common, random.rms), common + random.max};
}

// m_k = (2 B / d) cos(theta_k) with equidistributed theta_k; the largest error is in the slot.
SlotError one_hot(const Error& g, double bound, u64 slots) {
  constexpr int kAngles = 256;
  const double d = 2.0 * static_cast<double>(slots);
  double own = 0.0, square = 0.0;
  for (int k = 0; k < kAngles; ++k) {
    const double c = std::cos(2 * kPi * (k + 0.5) / kAngles), e = g(2 * bound / d * c);
    own += e * c / kAngles;
    square += e * e / kAngles;
  }
  return {std::sqrt(d * square), std::abs(d * own)};
}

}  // namespace

double modular_error(double x, u32 arcsine_degree) {
  const auto series = arcsine_series(arcsine_degree);
  const double y = std::sin(2 * kPi * x) / (2 * kPi);
  if (std::abs(x) > 0.125) {
    double f = 0.0;
    for (u64 k = series.size(); k-- > 0;) f = f * y * y + series[k];
    return f * y - x;
  }
  // x is the whole series in y, so the error is the part that was left out. |2 pi y| <= 0.71 here:
  // the terms shrink by half, or far faster.
  const double s = 4 * kPi * kPi * y * y;
  double power = y, sum = 0.0;  // power: binom(2k, k) / 4^k (2 pi)^(2k) y^(2k + 1)
  for (u32 k = 1; k < 80; ++k) {
    power *= (2.0 * k - 1) / (2.0 * k) * s;
    if (k >= series.size()) sum -= power / (2 * k + 1);
    if (std::abs(power) < 1e-20 * std::abs(sum)) break;
  }
  return sum;
}

double mean_square(const Message& message, u64 slots) {
  const double b = message.bound * message.bound;
  switch (message.kind) {
    case MessageKind::uniform_complex:
      return 2 * b / 3;
    case MessageKind::uniform_real:
    case MessageKind::uniform_unit:
    case MessageKind::periodic:
      return b / 3;
    case MessageKind::one_hot:
      return b / static_cast<double>(slots);
    case MessageKind::constant:
    case MessageKind::bound:
      break;
  }
  return b;
}

SlotError sine_error(const BootstrapModel& model, const Message& message) {
  const Error g{std::exp2(model.message_ratio), model.arcsine_degree};
  const double b = message.bound;
  switch (message.kind) {
    case MessageKind::uniform_complex:
      return random_message(g, 0, b, true, model.slots);
    case MessageKind::uniform_real:
      return random_message(g, 0, b, false, model.slots);
    case MessageKind::periodic:
      return random_message(g, 0, b, false, std::min<u64>(message.period, model.slots));
    case MessageKind::one_hot:
      return one_hot(g, b, model.slots);
    case MessageKind::uniform_unit:
      return random_message(g, b / 2, b / 2, false, model.slots);
    case MessageKind::constant:
    case MessageKind::bound:
      // One coefficient B. No message is worse: |error(m)| / m^2 grows with |m| <= B, and the sum
      // of all m_k^2 is the mean square of the slots, at most B^2.
      break;
  }
  return {std::abs(g(b)), std::abs(g(b))};
}

}  // namespace crenel::circuits
