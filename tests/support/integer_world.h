// Base of the suites of encrypted radix integers: a toy world, values, and comparisons.
#pragma once

#include <vector>

#include "crenel/tfhe/integer.h"
#include "support/integer_values.h"
#include "support/tfhe_world.h"

namespace crenel::test {

class IntegerTest : public TfheTest {
 protected:
  struct Pair {
    std::vector<u64> a, b;
  };

  virtual TfheWorld& toy() { return world("toy-lut4"); }
  tfhe::IntegerEvaluator integers() { return tfhe::IntegerEvaluator(toy().ev); }
  std::vector<u32> widths() const {
    if (!exhaustive()) return {2, 8};
    return {2, 4, 8, 10, 16, 32, 64};
  }
  // All pairs of edges, and random ones.
  Pair values(u32 bits, Rng& rng, u32 random = 16) const {
    Pair pair;
    integer_pairs(pair.a, pair.b, bits, random, rng);
    if (!exhaustive()) pair.a.resize(5), pair.b.resize(5);
    return pair;
  }
  // Fewer where an operation takes many look-ups.
  Pair few(u32 bits, Rng& rng, u64 count) const {
    Pair all = values(bits, rng), chosen;
    for (u64 i = 0; i < count; ++i) {
      const u64 at = i < 2 ? all.a.size() - 1 - i : rng() % all.a.size();
      chosen.a.push_back(all.a[at]), chosen.b.push_back(all.b[at]);
    }
    return chosen;
  }

  tfhe::Integers encrypt(const std::vector<u64>& values, u32 bits, bool is_signed) {
    if (!is_signed) return tfhe::encrypt_unsigned(toy().client, values, bits);
    std::vector<i64> numbers;
    for (const u64 v : values) numbers.push_back(as_signed(v, bits));
    return tfhe::encrypt_signed(toy().client, numbers, bits);
  }

  // Decrypted, as bits; every block must be below 4.
  std::vector<u64> open(const tfhe::Integers& x) {
    for (const tfhe::Ciphertext& block : x.blocks())
      for (const u64 m : toy().client.decrypt(block)) EXPECT_LT(m, 4u);
    if (!x.is_signed()) return tfhe::decrypt_unsigned(toy().client, x);
    std::vector<u64> bits;
    for (const i64 v : tfhe::decrypt_signed(toy().client, x)) {
      EXPECT_EQ(as_signed(static_cast<u64>(v), x.bits()), v);
      bits.push_back(static_cast<u64>(v) & width_mask(x.bits()));
    }
    return bits;
  }

  template <class F>
  void expect(const tfhe::Integers& found, const Pair& in, F f) {
    const std::vector<u64> values = open(found);
    ASSERT_EQ(values.size(), in.a.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], u64(f(in.a[i], in.b[i])) & width_mask(found.bits()))
          << found.bits() << " bits, " << in.a[i] << ", " << in.b[i];
  }
  template <class F>
  void expect_flags(const tfhe::Ciphertext& found, const Pair& in, F f) {
    const std::vector<u64> values = toy().client.decrypt(found);
    ASSERT_EQ(values.size(), in.a.size());
    EXPECT_EQ(found.plain_modulus(), 32u);
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_EQ(values[i], u64(f(in.a[i], in.b[i]))) << in.a[i] << ", " << in.b[i];
  }
};

}  // namespace crenel::test
