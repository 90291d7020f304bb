// A matrix times an encrypted vector: diagonals and hoisted rotations.
#include <crenel/crenel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>
#include <vector>

namespace ckks = crenel::ckks;

int main() {
  constexpr std::size_t kSize = 16;
  const auto params = ckks::Params::generate(/*log_n=*/14, /*scale_bits=*/40, /*depth=*/1);
  const ckks::Context context(params);
  auto client = context.keygen();
  std::vector<crenel::i64> steps(kSize);
  std::iota(steps.begin(), steps.end(), 0);
  ckks::KeyRequest wanted;
  wanted.rotations = steps;
  wanted.relinearisation = false;
  const auto ev = context.evaluator(client.evaluation_keys(wanted));

  std::vector<double> matrix(kSize * kSize), x(kSize);
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = std::cos(static_cast<double>(i * i));
  for (std::size_t i = 0; i < kSize; ++i) x[i] = std::sin(static_cast<double>(3 * i));
  const auto encrypted = client.encrypt(x, {}, 0.0, kSize);  // repeated through the ciphertext

  // Row i of A x is the sum over k of A[i, i + k] x[i + k]: diagonal k times x rotated by k.
  const auto rotated = ev.rotate_many(encrypted, steps);  // one decomposition for all rotations
  std::optional<ckks::Ciphertext> sum;
  for (std::size_t k = 0; k < kSize; ++k) {
    std::vector<double> diagonal(kSize);
    for (std::size_t i = 0; i < kSize; ++i) diagonal[i] = matrix[i * kSize + (i + k) % kSize];
    const crenel::u32 level = encrypted.level();
    auto term =
        ev.multiply(rotated[k], context.encode(diagonal, level, params.scale(level), kSize));
    sum = sum ? ev.add(*sum, term) : std::move(term);
  }
  const auto y = client.decrypt(ev.rescale(*sum));

  double error = 0;
  for (std::size_t i = 0; i < kSize; ++i) {
    double expected = 0;
    for (std::size_t k = 0; k < kSize; ++k) expected += matrix[i * kSize + k] * x[k];
    error = std::max(error, std::abs(y[i] - expected));
  }
  std::printf("%zu x %zu matrix times encrypted vector: largest error 2^%.1f\n", kSize, kSize,
              std::log2(error));
  return error < std::ldexp(1.0, -15) ? 0 : 1;
}
