// A function that is not a polynomial: fit one to it on an interval, evaluate that.
#include <crenel/crenel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <vector>

namespace ckks = crenel::ckks;

namespace {

constexpr double kA = -4.0, kB = 4.0;
constexpr crenel::u32 kDegree = 15;

double gelu(double t) {
  return 0.5 * t * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (t + 0.044715 * t * t * t)));
}

/// The Chebyshev series on [kA, kB] in the clear.
double series(const std::vector<double>& c, double t) {
  const double x = (2 * t - kA - kB) / (kB - kA);
  double sum = 0;
  for (std::size_t k = 0; k < c.size(); ++k)
    sum += c[k] * std::cos(static_cast<double>(k) * std::acos(std::clamp(x, -1.0, 1.0)));
  return sum;
}

}  // namespace

int main() {
  // Degree 15 takes 4 levels; an interval other than [-1, 1] takes one more to map it there.
  const auto params = ckks::Params::generate(14, 40, ckks::polynomial_depth(kDegree) + 1);
  const ckks::Context context(params);
  auto client = context.keygen();
  const auto ev = context.evaluator(client.evaluation_keys());

  std::vector<double> x(params.slots());
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = kA + (kB - kA) * static_cast<double>(i) / static_cast<double>(x.size() - 1);
  const auto coefficients = ckks::chebyshev_coefficients(gelu, kA, kB, kDegree);
  const auto y = client.decrypt(
      ev.polynomial(client.encrypt(x), coefficients, ckks::PolynomialBasis::chebyshev, kA, kB));

  double fit = 0, encryption = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double clear = series(coefficients, x[i]);
    fit = std::max(fit, std::abs(clear - gelu(x[i])));
    encryption = std::max(encryption, std::abs(y[i] - clear));
  }
  std::printf("error of degree %u: 2^%.1f\n", kDegree, std::log2(fit));
  std::printf("error of encryption: 2^%.1f\n", std::log2(encryption));
  return encryption < std::ldexp(1.0, -15) ? 0 : 1;
}
