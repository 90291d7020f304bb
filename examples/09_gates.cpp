// Gates on encrypted bits: sums of 4-bit numbers by a ripple-carry adder, many at once.
#include <cstdio>
#include <random>
#include <vector>

#include "crenel/crenel.h"

using namespace crenel;
using tfhe::Ciphertext;
using tfhe::Gate;

int main() {
  constexpr u32 kBits = 4;
  const tfhe::Context context(tfhe::Params::preset("bool128"));
  auto client = context.keygen();
  const auto ev = context.evaluator(client.evaluation_keys());

  std::mt19937 rng(1);
  std::vector<u64> x(8), y(8);
  for (auto& v : x) v = rng() % (1 << kBits);
  for (auto& v : y) v = rng() % (1 << kBits);
  // One array for each place: bit i of every number.
  const auto encrypt_place = [&](const std::vector<u64>& numbers, u32 place) {
    std::vector<u64> bits;
    for (const u64 v : numbers) bits.push_back(v >> place & 1);
    return client.encrypt(bits);
  };

  std::vector<Ciphertext> digits;
  Ciphertext carry = ev.trivial(std::vector<u64>(x.size(), 0));
  for (u32 i = 0; i < kBits; ++i) {
    const Ciphertext a = encrypt_place(x, i), b = encrypt_place(y, i);
    const Ciphertext* all[] = {&a, &b, &carry};
    Ciphertext next = ev.gate(Gate::majority, all);
    digits.push_back(ev.gate(Gate::xor_, ev.gate(Gate::xor_, a, b), carry));
    carry = std::move(next);
  }
  digits.push_back(std::move(carry));

  std::vector<u64> sums(x.size(), 0);
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const auto bits = client.decrypt(digits[i]);
    for (std::size_t j = 0; j < sums.size(); ++j) sums[j] += bits[j] << i;
  }
  bool right = true;
  for (std::size_t j = 0; j < sums.size(); ++j) {
    std::printf("%d + %d = %d\n", int(x[j]), int(y[j]), int(sums[j]));
    right &= sums[j] == x[j] + y[j];
  }
  std::printf("a gate fails with probability 2^%.0f\n", context.params().p_fail_log2());
  return right ? 0 : 1;
}
