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

}  // namespace

int main() {
  // Degree 15 takes 4 levels; an interval other than [-1, 1] takes one more to map it there.
  const ckks::ChebyshevFit fit(gelu, kA, kB, kDegree);
  const auto params = ckks::Params::generate(14, 40, fit.depth());
  const ckks::Context context(params);
  auto client = context.keygen();
  const auto ev = context.evaluator(client.evaluation_keys());

  std::vector<double> x(params.slots());
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = kA + (kB - kA) * static_cast<double>(i) / static_cast<double>(x.size() - 1);
  const auto y = client.decrypt(fit(ev, client.encrypt(x)));

  double encryption = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    encryption = std::max(encryption, std::abs(y[i] - fit.clear(x[i])));
  std::printf("error of degree %u: 2^%.1f\n", kDegree, std::log2(fit.error()));
  std::printf("error of encryption: 2^%.1f\n", std::log2(encryption));
  return encryption < std::ldexp(1.0, -15) ? 0 : 1;
}
