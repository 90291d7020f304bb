// Anyone encrypts with the public key; what is published comes from decrypt_to_share.
#include <crenel/crenel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace ckks = crenel::ckks;

int main() {
  constexpr std::size_t kLength = 8;
  // Noise 2^15 and more times larger than the error it hides needs room (SECURITY.md).
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
  // The circuit, of ciphertexts and of their error bounds.
  const auto sum = [](const auto& ev, const auto& a, const auto& b, const auto& c) {
    return ev.add(ev.add(a, b), c);
  };
  const auto ev = context.evaluator({});
  const auto total = sum(ev, ciphertexts[0], ciphertexts[1], ciphertexts[2]);

  // What the key holder knows: parameters, circuit, and that nobody's values exceed 1.
  const ckks::ErrorModel model(params);
  const auto one = model.input(1.0, /*real=*/true, {}, 0.0, kLength, ckks::Encryption::public_key);
  const auto share = client.decrypt_to_share(total, sum(model, one, one, one),
                                             {.statistical_bits = 40, .queries = 10});
  const auto exact = client.decrypt(total);  // for the key holder's own eyes

  double private_error = 0, published_error = 0;
  for (std::size_t i = 0; i < kLength; ++i) {
    private_error = std::max(private_error, std::abs(exact[i] - expected[i]));
    published_error = std::max(published_error, std::abs(share.values[i] - expected[i]));
  }
  std::printf("error kept private   2^%.1f\n", std::log2(private_error));
  std::printf("error when published 2^%.1f\n", std::log2(published_error));
  std::printf("bits that remain     %.1f\n", share.precision_bits);
  return published_error < 16 * share.noise_std ? 0 : 1;
}
