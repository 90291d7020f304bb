// The inner product of two encrypted vectors: multiply, rescale, add up the slots by rotations.
#include <crenel/crenel.h>

#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

namespace ckks = crenel::ckks;

int main() {
  constexpr std::size_t kLength = 8;  // a power of two
  const auto params = ckks::Params::generate(/*log_n=*/14, /*scale_bits=*/40, /*depth=*/2);
  const ckks::Context context(params);
  auto client = context.keygen();
  const auto server = context.evaluator(client.evaluation_keys({.rotations = {1, 2, 4}}));

  const std::vector<double> x{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8};
  const std::vector<double> y{0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1};
  const auto product = server.multiply_rescale(client.encrypt(x), client.encrypt(y));
  const auto sum = server.sum_slots(product, kLength);

  const double result = client.decrypt(sum).front().real();
  const double expected = std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  std::printf("inner product on %s: %.9f, expected %.9f\n", context.device().info().name.c_str(),
              result, expected);
  return std::abs(result - expected) < std::ldexp(1.0, -15) ? 0 : 1;
}
