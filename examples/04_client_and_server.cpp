// Client and server exchange bytes: parameters, keys, ciphertexts. The server holds no secret.
#include <crenel/crenel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace ckks = crenel::ckks;
using Bytes = std::vector<crenel::u8>;

namespace {

/// A moving average over four neighbours. Everything that arrives is checked before use.
Bytes serve(const Bytes& params_bytes, const Bytes& key_bytes, const Bytes& request) {
  const ckks::Context context(ckks::params_from_bytes(params_bytes));
  const auto ev = context.evaluator(ckks::evaluation_keys_from_bytes(context, key_bytes));
  const auto x = ckks::ciphertext_from_bytes(context, request);
  const std::vector<crenel::i64> steps{0, 1, 2, 3};
  return ckks::to_bytes(context, ev.rescale(ev.multiply(ev.rotate_sum(x, steps), 0.25)));
}

}  // namespace

int main() {
  const auto params = ckks::Params::generate(/*log_n=*/13, /*scale_bits=*/30, /*depth=*/1);
  const ckks::Context context(params, "cpu");
  auto client = context.keygen();
  ckks::KeyRequest wanted;
  wanted.rotations = {1, 2, 3};
  wanted.relinearisation = false;
  const Bytes keys = ckks::to_bytes(context, client.evaluation_keys(wanted));

  std::vector<double> x(params.slots());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.1 * static_cast<double>(i));
  Bytes request = ckks::to_bytes(context, client.encrypt(x));
  const Bytes reply = serve(ckks::to_bytes(params), keys, request);
  std::printf("keys %zu bytes, request %zu bytes, reply %zu bytes\n", keys.size(), request.size(),
              reply.size());

  // Exact, for the client's own eyes; what it would show to others: example 06.
  const auto y = client.decrypt(ckks::ciphertext_from_bytes(context, reply));
  double error = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double sum = 0;
    for (std::size_t k = 0; k < 4; ++k) sum += x[(i + k) % x.size()];
    error = std::max(error, std::abs(y[i] - sum / 4));
  }
  std::printf("largest error 2^%.1f\n", std::log2(error));
  if (!(error < std::ldexp(1.0, -10))) return 1;

  request.pop_back();  // damaged bytes are refused, with what and where
  try {
    ckks::ciphertext_from_bytes(context, request);
  } catch (const crenel::SerializationError& refusal) {
    std::printf("refused: %s\n", refusal.what());
    return 0;
  }
  return 1;
}
