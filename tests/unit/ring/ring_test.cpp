// Tables of the ring and the views.
#include "ring/ring.h"

#include <gtest/gtest.h>

#include "ring/poly_view.h"
#include "support/chains.h"

namespace crenel::ring {
namespace {

u64 power(u64 base, u64 exponent, u64 q) {
  u128 result = 1, b = base % q;
  for (; exponent; exponent >>= 1, b = b * b % q)
    if (exponent & 1) result = result * b % q;
  return static_cast<u64>(result);
}

TEST(Ring, RootsByDefinition) {
  for (const u32 log_n : {1u, 2u, 6u, 10u}) {
    const u64 n = u64(1) << log_n;
    const Ring ring(log_n, {test::kTinyPrime, test::kTerminalPrimes[0], test::kSpecialPrimes[0]});
    ASSERT_EQ(ring.prime_count(), 3u);
    for (u32 p = 0; p < 3; ++p) {
      const auto& t = ring.prime(p);
      const u64 q = t.modulus.q;
      ASSERT_EQ(power(t.psi, n, q), q - 1) << "psi is a primitive 2N-th root";
      for (u64 odd = 3; odd < 2 * n; odd += 2)
        ASSERT_LE(t.psi, power(t.psi, odd, q)) << "the smallest one";
      ASSERT_EQ(u128(t.psi) * t.psi_inv % q, 1u);
      ASSERT_EQ(u128(t.n_inv.value) * n % q, 1u);
      for (u32 i = 0; i < n; ++i) {
        const u64 exponent = bit_reverse(i, log_n);
        ASSERT_EQ(t.roots[i].value, power(t.psi, exponent, q));
        ASSERT_EQ(t.inverse_roots[i].value, power(t.psi_inv, exponent, q));
        ASSERT_EQ(t.roots[i].quotient,
                  static_cast<u32>((u64(t.roots[i].value) << 32) / t.modulus.q));
      }
    }
  }
}

TEST(Ring, RefusesWrongPrimes) {
  EXPECT_THROW(Ring(0, {test::kTinyPrime}), ParameterError);
  EXPECT_THROW(Ring(18, {test::kTinyPrime}), ParameterError);
  EXPECT_THROW(Ring(10, {}), ParameterError);
  EXPECT_THROW(Ring(10, {u64(1) << 31 | 1}), ParameterError);
  try {
    Ring(17, {test::kSpecialPrimes[0]});
    FAIL() << "2147352577 is not 1 mod 2^18";
  } catch (const ParameterError& e) {
    EXPECT_EQ(e.field("prime"), "2147352577");
  }
}

TEST(Galois, RotationElements) {
  const u32 log_n = 6;
  EXPECT_EQ(galois_element_for_rotation(0, log_n), 1u);
  EXPECT_EQ(galois_element_for_rotation(1, log_n), 5u);
  EXPECT_EQ(galois_element_for_rotation(2, log_n), 25u);
  EXPECT_EQ(galois_element_for_rotation(3, log_n), 125u);
  EXPECT_EQ(galois_element_for_rotation(4, log_n), 625u % 128);
  EXPECT_EQ(galois_element_for_rotation(-1, log_n), galois_inverse(5, log_n));
  EXPECT_EQ(galois_element_for_rotation(32 + 3, log_n), galois_element_for_rotation(3, log_n));
  EXPECT_EQ(galois_element_for_rotation(-32000000001, log_n),
            galois_element_for_rotation(-1, log_n));
  EXPECT_EQ(galois_element_for_conjugation(log_n), 127u);
  for (u64 e = 1; e < 128; e += 2) EXPECT_EQ(e * galois_inverse(e, log_n) % 128, 1u);
}

TEST(Galois, EvaluationSourceIsAPermutation) {
  const u32 log_n = 7, n = 128;
  for (u64 e = 1; e < 2 * n; e += 2) {
    std::vector<bool> seen(n, false);
    for (u32 i = 0; i < n; ++i) {
      const u32 source = galois_eval_source(i, e, log_n);
      ASSERT_LT(source, n);
      ASSERT_FALSE(seen[source]);
      seen[source] = true;
      // The point psi^(2 brev(source) + 1) is the e-th power of the point of i.
      ASSERT_EQ((2 * bit_reverse(source, log_n) + 1) % (2 * n),
                e * (2 * bit_reverse(i, log_n) + 1) % (2 * n));
    }
  }
}

TEST(PolyView, WindowsAndComponents) {
  std::vector<u32> words(2 * 3 * 5 * 16);
  const PolyView<u32> v(words.data(), {4, 3, 2}, LimbSet::range(4, 9), Domain::eval);
  EXPECT_EQ(v.words(), words.size());
  EXPECT_EQ(v.limb(1, 2, 3), words.data() + ((1 * 3 + 2) * 5 + 3) * 16);
  const auto window = v.limb_window(1, 3);
  EXPECT_EQ(window.limbs, LimbSet::range(5, 8));
  EXPECT_EQ(window.limb(1, 2, 0), v.limb(1, 2, 1));
  EXPECT_EQ(v.restrict_to(LimbSet::range(5, 8)).data, window.data);
  const auto part = v.components(1, 2);
  EXPECT_EQ(part.shape.components, 2u);
  EXPECT_EQ(part.limb(1, 0, 4), v.limb(1, 1, 4));
  LimbSet gap;
  gap.push_back(4);
  gap.push_back(6);
  EXPECT_THROW(v.restrict_to(gap), StateError);
  EXPECT_THROW(v.restrict_to(LimbSet::range(3, 5)), StateError);
  EXPECT_TRUE(v.restrict_to({}).limbs.empty());
  EXPECT_THROW(v.restrict_to(LimbSet::range(7, 10)), StateError);
}

}  // namespace
}  // namespace crenel::ring
