#include "random/sparse.h"

#include <bit>

#include "crenel/core/error.h"
#include "random/chacha20.h"
#include "random/samplers.h"

namespace crenel::random {
namespace {

struct Entry {
  u64 key;
  u64 value;
};

// All ones when a > b, else zero; arithmetic, so that no compiler makes a branch of it.
u64 greater_mask(u64 a, u64 b) {
  const u64 borrow = (~b & a) | ((~b | a) & (b - a));  // top bit: b - a needs one, that is b < a
  return u64(0) - (borrow >> 63);
}

void swap_if(Entry& a, Entry& b, u64 mask) {
  const u64 key = (a.key ^ b.key) & mask;
  const u64 value = (a.value ^ b.value) & mask;
  a.key ^= key, b.key ^= key;
  a.value ^= value, b.value ^= value;
}

// Bitonic sorting network on a power of two: its comparisons depend on the size only.
void sort_obliviously(core::SecretVector<Entry>& entries) {
  const std::size_t n = entries.size();
  for (std::size_t run = 2; run <= n; run *= 2)
    for (std::size_t distance = run / 2; distance > 0; distance /= 2)
      for (std::size_t i = 0; i < n; ++i) {
        const std::size_t j = i ^ distance;
        if (j < i) continue;
        Entry& low = (i & run) == 0 ? entries[i] : entries[j];
        Entry& high = (i & run) == 0 ? entries[j] : entries[i];
        swap_if(low, high, greater_mask(low.key, high.key));
      }
}

}  // namespace

core::SecretVector<i8> sample_sparse_ternary(SecretSource& source, u32 n, u32 weight) {
  if (!std::has_single_bit(n) || weight > n)
    throw ParameterError(cat("sparse secret of weight ", weight, " among ", n,
                             " coefficients, expected a power of two and a weight up to it"),
                         {{"n", n}, {"weight", weight}});
  ChaChaState state = chacha20_state(source.seed(), source.next(Purpose::secret_key));
  core::SecretVector<Entry> entries(n);
  // Block i/8 holds the 64-bit sort key of entry i; block n/8 (rounded up) + i/512 its sign bit.
  // Equal keys, of probability below n^2 / 2^65, would keep their order: a bias far below any
  // advantage.
  const u32 sign_blocks = (n + 7) / 8;
  ChaChaBlock keys{}, signs{};
  for (u32 i = 0; i < n; ++i) {
    if (i % 8 == 0) keys = chacha20_block(state, i / 8);
    if (i % 512 == 0) signs = chacha20_block(state, sign_blocks + i / 512);
    const u32* w = keys.word + 2 * (i % 8);
    const u64 negative = (signs.word[(i % 512) / 32] >> (i % 32)) & 1u;
    const u64 nonzero = i < weight ? 1 : 0;
    entries[i] = {static_cast<u64>(w[1]) << 32 | w[0], nonzero * (u64(1) - 2 * negative)};
  }
  sort_obliviously(entries);
  core::SecretVector<i8> result(n);
  for (u32 i = 0; i < n; ++i) result[i] = static_cast<i8>(entries[i].value);
  secure_zero(&state, sizeof state);
  secure_zero(&keys, sizeof keys);
  secure_zero(&signs, sizeof signs);
  return result;
}

core::SecretVector<i8> sample_dense_ternary(SecretSource& source, u32 n) {
  ChaChaState state = chacha20_state(source.seed(), source.next(Purpose::secret_key));
  core::SecretVector<i8> result(n);
  ChaChaBlock block{};
  for (u32 i = 0; i < n; ++i) {
    if (i % 256 == 0) block = chacha20_block(state, i / 256);
    result[i] = static_cast<i8>(ternary_value(block, i % 256));
  }
  secure_zero(&state, sizeof state);
  secure_zero(&block, sizeof block);
  return result;
}

}  // namespace crenel::random
