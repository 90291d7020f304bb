// Anyone encrypts with the public key; results are published only with noise flooding.
#include <crenel/crenel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace ckks = crenel::ckks;

int main() {
  constexpr std::size_t kLength = 8;
  // Flooding needs room: noise 2^15 times larger than the error it hides (SECURITY.md).
  const auto params = ckks::Params::generate(/*log_n=*/14, /*scale_bits=*/50, /*depth=*/1);
  const ckks::Context context(params);
  auto client = context.keygen();
  const auto public_key = client.public_key();

  // Three parties encrypt, somebody without any key adds.
  std::vector<double> expected(kLength, 0.0);
  std::vector<ckks::Ciphertext> ciphertexts;
  for (int party = 1; party <= 3; ++party) {
    std::vector<double> values(kLength);
    for (std::size_t i = 0; i < kLength; ++i) {
      values[i] = 1.0 / static_cast<double>(party * (i + 1));
      expected[i] += values[i];
    }
    ciphertexts.push_back(public_key.encrypt(context.encode(values, {}, 0.0, kLength)));
  }
  const auto ev = context.evaluator({});
  const auto total = ev.add(ev.add(ciphertexts[0], ciphertexts[1]), ciphertexts[2]);

  // The error of a public-key encryption, measured once on a message that is known.
  const auto trial = public_key.encrypt(context.encode(std::vector<double>(1, 0.0)));
  double squares = 0;
  for (const auto& z : client.decrypt(trial)) squares += std::norm(z);
  const double noise_std =
      std::sqrt(squares / static_cast<double>(params.slots() * params.ring_dim())) * trial.scale();
  // Three of them were added.
  const auto published =
      client.decrypt(total, ckks::Flooding{.noise_std = std::sqrt(3.0) * noise_std});
  const auto exact = client.decrypt(total);

  double private_error = 0, published_error = 0;
  for (std::size_t i = 0; i < kLength; ++i) {
    private_error = std::max(private_error, std::abs(exact[i] - expected[i]));
    published_error = std::max(published_error, std::abs(published[i] - expected[i]));
  }
  std::printf("error kept private   2^%.1f\n", std::log2(private_error));
  std::printf("error when published 2^%.1f\n", std::log2(published_error));
  return published_error < std::ldexp(1.0, -10) ? 0 : 1;
}
