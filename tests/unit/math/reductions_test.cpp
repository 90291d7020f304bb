// Reductions to the edges of their ranges, against the remainder of a wider integer.
#include <gtest/gtest.h>

#include "math/modulus.h"
#include "math/primes.h"
#include "support/random.h"

namespace crenel::math {
namespace {

using test::Rng;
using test::test_rng;

// Odd moduli below 2^(bits-1), the extremes first; none of the reductions needs a prime.
template <class W>
std::vector<W> moduli() {
  if constexpr (sizeof(W) == 4)
    return {2147483647u, 2147483645u, 2147352577u, 1073872897u, 31326209u, 786433u, 17u, 3u};
  else
    return {9223372036854775807ull,
            9223372036854775805ull,
            4611686018326724609ull,
            1152921504606830593ull,
            4294967311ull,
            1073872897ull,
            17ull,
            3ull};
}

// Words that are likely to hurt: around 0, q, 2q, half and all of the word.
template <class W>
std::vector<W> words(W q, Rng& rng) {
  std::vector<W> x{0,
                   1,
                   2,
                   W(q - 1),
                   q,
                   W(q + 1),
                   W(2 * q - 1),
                   W(2 * q),
                   W(q / 2),
                   W(q / 2 + 1),
                   W(~W(0)),
                   W(~W(0) - 1),
                   W(W(1) << (WordTraits<W>::bits - 1)),
                   W((W(1) << (WordTraits<W>::bits - 1)) - 1)};
  for (int i = 0; i < 50; ++i) x.push_back(static_cast<W>(rng()));
  return x;
}

template <class W>
class Arithmetic : public testing::Test {};
using BothWords = testing::Types<u32, u64>;
TYPED_TEST_SUITE(Arithmetic, BothWords);

TYPED_TEST(Arithmetic, BarrettTakesEveryDoubleWord) {
  using W = TypeParam;
  Rng rng = test_rng();
  for (const W q : moduli<W>()) {
    const Modulus<W> m(q);
    for (const W high : words<W>(q, rng))
      for (const W low : words<W>(q, rng)) {
        const Wide<W> x = static_cast<Wide<W>>(high) << WordTraits<W>::bits | low;
        ASSERT_EQ(barrett_reduce<W>(x, m), static_cast<W>(x % q)) << "q = " << q;
      }
    // Just around multiples of q, where the estimated quotient is off by one.
    const Wide<W> most = ~Wide<W>(0) / q;
    for (const Wide<W> k : {Wide<W>(1), Wide<W>(2), most / 2, most - 1, most})
      for (const int delta : {-1, 0, 1}) {
        const Wide<W> x = k * q + static_cast<Wide<W>>(static_cast<i128>(delta));
        ASSERT_EQ(barrett_reduce<W>(x, m), static_cast<W>(x % q)) << "q = " << q;
      }
  }
}

TYPED_TEST(Arithmetic, ShoupTakesEveryWord) {
  using W = TypeParam;
  Rng rng = test_rng();
  for (const W q : moduli<W>())
    for (W c : words<W>(q, rng)) {
      c %= q;
      const auto shoup = make_shoup<W>(c, q);
      for (const W x : words<W>(q, rng)) {
        const W expected = static_cast<W>(static_cast<Wide<W>>(x) * c % q);
        const W lazy = mul_shoup_lazy<W>(x, shoup.value, shoup.quotient, q);
        ASSERT_LT(lazy, 2 * static_cast<Wide<W>>(q));
        ASSERT_EQ(lazy % q, expected);
        ASSERT_EQ(mul_shoup<W>(x, shoup, q), expected) << x << " * " << c << " mod " << q;
      }
    }
}

TYPED_TEST(Arithmetic, AddSubtractNegate) {
  using W = TypeParam;
  Rng rng = test_rng();
  for (const W q : moduli<W>())
    for (W a : words<W>(q, rng))
      for (W b : words<W>(q, rng)) {
        a %= q, b %= q;
        const Wide<W> wide = a, radix = q;
        ASSERT_EQ(add_mod<W>(a, b, q), static_cast<W>((wide + b) % radix));
        ASSERT_EQ(sub_mod<W>(a, b, q), static_cast<W>((wide + q - b) % radix));
        ASSERT_EQ(neg_mod<W>(a, q), static_cast<W>((radix - a) % radix));
      }
}

TYPED_TEST(Arithmetic, FromSigned) {
  using W = TypeParam;
  Rng rng = test_rng();
  for (const W q : moduli<W>()) {
    const Modulus<W> m(q);
    std::vector<i64> inputs{0, 1, -1, std::numeric_limits<i64>::min(),
                            std::numeric_limits<i64>::max()};
    for (int i = 0; i < 100; ++i) inputs.push_back(static_cast<i64>(rng()) >> (rng() % 64));
    for (const i64 x : inputs) {
      const i128 rest = static_cast<i128>(x) % static_cast<i128>(q);
      ASSERT_EQ(from_signed<W>(x, m), static_cast<W>(rest < 0 ? rest + static_cast<i128>(q) : rest))
          << x;
    }
  }
}

TYPED_TEST(Arithmetic, PowersAndInverses) {
  using W = TypeParam;
  Rng rng = test_rng();
  const Modulus<W> m(sizeof(W) == 4 ? W(2147352577u) : W(4611686018326724609ull));
  ASSERT_TRUE(is_prime(m.q));
  for (int i = 0; i < 50; ++i) {
    const W a = static_cast<W>(rng() % (m.q - 1) + 1);
    EXPECT_EQ(mul_mod<W>(a, inverse_mod<W>(a, m), m), W(1));
    EXPECT_EQ(pow_mod<W>(a, 0, m), W(1));
    EXPECT_EQ(pow_mod<W>(a, 5, m),
              mul_mod<W>(mul_mod<W>(mul_mod<W>(a, a, m), mul_mod<W>(a, a, m), m), a, m));
    EXPECT_EQ(pow_mod<W>(a, static_cast<u64>(m.q) - 1, m), W(1));
  }
}

}  // namespace
}  // namespace crenel::math
