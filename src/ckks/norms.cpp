#include "ckks/norms.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ckks/noise.h"

namespace crenel::ckks {
namespace {

const double kTail = 128.0 * std::numbers::ln2;

/// |A x|^2 for x of proxy 1: trace of S, its largest eigenvalue; tr(S^2) <= trace * largest.
double quadratic(double trace, double largest, double u) {
  return trace + 2.0 * std::sqrt(trace * largest * u) + 2.0 * largest * u;
}

}  // namespace

Norms operator+(const Norms& a, const Norms& b) {
  return {a.rms + b.rms, a.max + b.max, a.ring + b.ring, a.mean_square + b.mean_square};
}

Norms operator*(double factor, const Norms& a) {
  const double f = std::abs(factor);
  return {f * a.rms, f * a.max, f * a.ring, f * f * a.mean_square};
}

ErrorBound with_errors(ErrorBound a, const Norms& errors) {
  a.rms += errors.rms, a.max += errors.max, a.ring += errors.ring;
  a.variance += errors.mean_square;
  a.failure += 8 * kBoundFailure;  // at most eight bounds make a Norms
  return a;
}

NormBounds::NormBounds(const Params& params, u64 slots)
    : params_(params),
      n_(static_cast<double>(params.ring_dim())),
      kept_(2.0 * static_cast<double>(slots)) {}

// The value at a root is two real functionals of norm^2 kept/2, orthogonal to each other.
Norms NormBounds::noise(double v) const {
  const double slot = quadratic(kept_, kept_ / 2, kTail + std::log(kept_ / 2));
  const double root = quadratic(n_, n_ / 2, kTail + std::log(n_ / 2));
  return {std::sqrt(v * quadratic(kept_, 1.0, kTail)), std::sqrt(v * slot), std::sqrt(v * root),
          v * kept_};
}

Norms NormBounds::rounding() const {
  return {std::sqrt(kept_) / 2, kept_ / 2, kept_ / 2, noise::kRounding * kept_};
}

// The mean over the R roots that fall together: R pairs of functionals, of norm^2 n/(2R) each.
NormBounds::Factor NormBounds::factor(double v) const {
  const double ratio = n_ / kept_;
  return {v * quadratic(n_, 1.0, kTail),
          v * quadratic(n_, n_ / (2 * ratio), kTail + std::log(kept_ / 2)),
          v * quadratic(n_, n_ / 2, kTail + std::log(n_ / 2)), v};
}

// Exactly h coefficients +-1, wherever they are: the signs alone are random.
NormBounds::Factor NormBounds::secret() const {
  const double h = params_.spec().hamming_weight;
  if (h == 0.0) return factor(noise::kTernaryVariance);
  const double ratio = n_ / kept_;
  const auto signs = [&](double largest, double roots) {
    return std::min(h * h, quadratic(h, std::min(h, largest), kTail + std::log(roots)));
  };
  return {h, signs(n_ / (2 * ratio), kept_ / 2), signs(n_ / 2, n_ / 2), h / n_};
}

Norms NormBounds::times(const Factor& x, double v) const {
  const Norms unit = noise(v);
  const double trace = kept_ * x.weight, largest = std::min(x.kept, trace);
  return {std::sqrt(v * quadratic(trace, largest, kTail)), std::sqrt(x.kept) * unit.max,
          std::sqrt(x.ring) * unit.ring, kept_ * n_ * x.variance * v};
}

Norms NormBounds::secret_key_encryption() const { return noise(noise::kErrorVariance); }

Norms NormBounds::public_key_encryption() const {
  return times(factor(noise::kErrorVariance), noise::kTernaryVariance) +
         noise(noise::kErrorVariance) + times(secret(), noise::kErrorVariance);
}

Norms NormBounds::division() const {
  const double v = noise::division(0.0);
  return noise(v) + times(secret(), v);
}

Norms NormBounds::gadget(u32 level) const {
  return times(factor(noise::kErrorVariance), noise::digits(params_, level));
}

Norms NormBounds::key_switch(u32 level) const { return gadget(level) + division(); }

Norms NormBounds::merged(u32 level) const {
  return 1.0 / params_.rescale_ratio(level) * gadget(level) + division();
}

}  // namespace crenel::ckks
