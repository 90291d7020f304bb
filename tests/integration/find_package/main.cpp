// Encrypted product, rotation and polynomial with an installed Crenel, and what an error looks
// like.
#include <crenel/crenel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace ckks = crenel::ckks;

int main() {
  // Client: parameters, secret key, evaluation keys, encrypted inputs.
  const auto params = ckks::Params::generate(/*log_n=*/14, /*scale_bits=*/40, /*depth=*/3);
  const ckks::Context context(params, "cpu");
  auto client = context.keygen();
  const auto keys = client.evaluation_keys({.rotations = {1}});

  std::vector<double> x(params.slots()), y(params.slots());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(0.01 * static_cast<double>(i));
    y[i] = std::cos(0.02 * static_cast<double>(i));
  }
  const auto a = client.encrypt(x);
  const auto b = client.encrypt(y);

  // Server: holds the evaluation keys only.
  const auto server = context.evaluator(keys);
  const auto product = server.rescale(server.multiply(a, b));
  const auto rotated = server.rotate(product, 1);

  // What travels is bytes.
  const auto bytes = ckks::to_bytes(context, rotated);
  const auto received = ckks::ciphertext_from_bytes(context, bytes);

  // Client again.
  const auto z = client.decrypt(received);
  double error = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t j = (i + 1) % x.size();
    error = std::max(error, std::abs(z[i] - x[j] * y[j]));
  }
  std::printf("crenel %s, %.0f-bit security, %zu bytes, largest error %.3g\n", crenel::version(),
              params.security_bits(), bytes.size(), error);

  try {
    server.rotate(product, 5);
    return 1;
  } catch (const crenel::KeyMissingError& e) {
    std::printf("expected: %s\n", e.what());
  }
  return error < std::ldexp(1.0, -15) ? 0 : 1;
}
