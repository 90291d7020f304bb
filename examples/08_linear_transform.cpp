// A Fourier transform of encrypted vectors: a matrix prepared once, with many keys or with two.
#include <crenel/crenel.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <numbers>
#include <vector>

namespace ckks = crenel::ckks;
namespace circuits = crenel::circuits;

int main() {
  constexpr std::size_t kSize = 64;
  const auto params = ckks::Params::generate(/*log_n=*/14, /*scale_bits=*/40, /*depth=*/1);
  const ckks::Context context(params);
  auto client = context.keygen();

  std::vector<std::complex<double>> fourier(kSize * kSize), expected(kSize);
  std::vector<double> x(kSize);
  for (std::size_t i = 0; i < kSize; ++i) x[i] = std::sin(static_cast<double>(3 * i));
  for (std::size_t i = 0; i < kSize; ++i)
    for (std::size_t j = 0; j < kSize; ++j) {
      const double angle = -2.0 * std::numbers::pi * static_cast<double>(i * j % kSize) / kSize;
      fourier[i * kSize + j] = std::polar(1.0 / std::sqrt(kSize), angle);
      expected[i] += fourier[i * kSize + j] * x[j];
    }
  const auto matrix = circuits::DiagonalMatrix::from_dense(fourier, kSize, kSize, kSize);
  const auto encrypted = client.encrypt(x, {}, 0.0, kSize);  // repeated through the ciphertext

  // A matrix is a sum of diagonals times rotations; baby steps and giant steps need about
  // 2 sqrt(kSize) of them. Minimal keys repeat one step of each kind: two keys, more time.
  bool right = true;
  for (const auto keys : {circuits::KeyMode::hoisted, circuits::KeyMode::minimal}) {
    circuits::LinearTransformOptions options;
    options.keys = keys;
    const circuits::LinearTransform transform(context, matrix, options);
    ckks::KeyRequest wanted;
    wanted.rotations = transform.rotations();
    wanted.relinearisation = false;
    const auto ev = context.evaluator(client.evaluation_keys(wanted));
    const auto y = client.decrypt(transform(ev, encrypted));
    double error = 0;
    for (std::size_t i = 0; i < kSize; ++i) error = std::max(error, std::abs(y[i] - expected[i]));
    std::printf("%zu rotation keys: largest error 2^%.1f\n", wanted.rotations.size(),
                std::log2(error));
    right = right && error < std::ldexp(1.0, -15);
  }
  return right ? 0 : 1;
}
