// CRT composition against 128-bit integers.
#include "rns/compose.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/chains.h"
#include "support/random.h"

namespace {

using namespace crenel;
using i128 = __int128;

struct Composition : testing::Test {
  std::vector<u64> primes = test::largest_primes(13, 4);
  i128 product = i128(primes[0]) * primes[1] * primes[2];

  // Residues of x modulo the primes, `stride` words apart.
  std::vector<u32> residues(i128 x, std::size_t stride) const {
    std::vector<u32> r(primes.size() * stride, 0xdeadbeef);
    for (std::size_t i = 0; i < primes.size(); ++i) {
      const i128 q = primes[i];
      r[i * stride] = static_cast<u32>((x % q + q) % q);
    }
    return r;
  }
  rns::CrtComposer composer(std::size_t count) const {
    std::vector<math::Modulus<u32>> moduli;
    for (std::size_t i = 0; i < count; ++i) moduli.emplace_back(static_cast<u32>(primes[i]));
    return rns::CrtComposer(moduli);
  }
  // A value in (-product / 2, product / 2) of about `bits` bits.
  i128 draw(test::Rng& rng, int bits) const {
    const i128 wide = i128(rng() >> 1) << 63 | i128(rng() >> 1);
    const i128 x = wide & ((i128(1) << bits) - 1);
    return rng() & 1 ? -x : x;
  }
};

TEST_F(Composition, IsTheCentredIntegerToTheNearestDoubleOrItsNeighbour) {
  test::Rng rng = test::test_rng();
  const auto composer = this->composer(3);
  std::vector<i128> values{0, 1, -1, product / 2, -(product / 2)};
  for (int bits = 1; bits < 92; ++bits) values.push_back(draw(rng, bits));
  for (const i128 x : values)
    for (const std::size_t stride : {1, 7}) {
      const double expected = static_cast<double>(x);
      const double found = composer.to_double(residues(x, stride).data(), stride);
      EXPECT_LE(std::abs(found - expected), std::abs(expected) * std::exp2(-51)) << expected;
    }
}

TEST_F(Composition, OfTheFirstPrimesNoticesValuesThatTheyDoNotHold) {
  test::Rng rng = test::test_rng();
  const auto composer = this->composer(4);
  const i128 two = i128(primes[0]) * primes[1];
  for (int i = 0; i < 200; ++i) {
    const i128 small = draw(rng, 60);
    ASSERT_LT(small < 0 ? -small : small, two / 2);
    const auto found = composer.to_double_checked(residues(small, 1).data(), 1, 2);
    ASSERT_TRUE(found.has_value());
    EXPECT_DOUBLE_EQ(*found, static_cast<double>(small));
    // One multiple of the product away the third residue is another one.
    EXPECT_FALSE(composer.to_double_checked(residues(small + two, 1).data(), 1, 2).has_value());
  }
}

}  // namespace
