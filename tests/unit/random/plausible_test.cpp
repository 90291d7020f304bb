#include "random/plausible.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/random.h"

namespace crenel::random {
namespace {

/// log2 of the probability of a count as far from the mean as `count`, on its side: summed up.
double log2_tail(u64 count, u64 trials, double p) {
  const double n = static_cast<double>(trials);
  const bool low = static_cast<double>(count) <= n * p;
  long double sum = 0;
  for (u64 k = low ? 0 : count; k <= (low ? count : trials); ++k) {
    const double j = static_cast<double>(k);
    sum += std::exp(static_cast<long double>(std::lgamma(n + 1) - std::lgamma(j + 1) -
                                             std::lgamma(n - j + 1) + j * std::log(p) +
                                             (n - j) * std::log1p(-p)));
  }
  return static_cast<double>(std::log2(sum));
}

TEST(TernaryCounts, AreThoseOfTheCoefficients) {
  auto rng = test::test_rng();
  for (int round = 0; round < 20; ++round) {
    std::vector<i8> coefficients(rng() % 600);
    TernaryCounts expected;
    for (i8& c : coefficients) {
      c = static_cast<i8>(static_cast<int>(rng() % 3) - 1);
      expected.ones += c == 1;
      expected.minus_ones += c == -1;
    }
    const TernaryCounts found = count_ternary(coefficients);
    EXPECT_EQ(found.ones, expected.ones);
    EXPECT_EQ(found.minus_ones, expected.minus_ones);
    EXPECT_FALSE(found.other);
    for (int wrong = -128; wrong < 128; ++wrong) {
      auto some = coefficients;
      some.insert(some.begin() + static_cast<i64>(rng() % (some.size() + 1)),
                  static_cast<i8>(wrong));
      EXPECT_EQ(count_ternary(some).other, wrong < -1 || wrong > 1) << wrong;
    }
  }
}

TEST(PlausibleCount, RefusesOnlyWhatChanceDoesNotGive) {
  for (const double p : {0.25, 1.0 / 3, 0.5})
    for (const u64 n : {8u, 64u, 500u, 1024u, 2048u}) {
      u64 refused = 0;
      for (u64 count = 0; count <= n; ++count) {
        const double tail = log2_tail(count, n, p);
        if (!plausible_count(count, n, p)) {
          ++refused;
          EXPECT_LT(tail, -64.0) << count << " of " << n << " at " << p;
        } else {
          EXPECT_GT(tail, -64.0 - 16.0) << count << " of " << n << " at " << p;
        }
      }
      if (n >= 500) {
        EXPECT_GT(refused, n / 4) << n << " at " << p;
      }
    }
}

TEST(PlausibleCount, ZeroAndEverythingAreRefusedOfRealSecrets) {
  for (const u64 n : {500u, 512u, 1024u, 65536u})
    for (const double p : {0.25, 1.0 / 3, 0.5}) {
      EXPECT_FALSE(plausible_count(0, n, p)) << n << " at " << p;
      EXPECT_FALSE(plausible_count(n, n, p)) << n << " at " << p;
    }
  EXPECT_FALSE(plausible_count(501, 500, 0.5));  // no count of them
}

TEST(PlausibleCount, HonestDrawsPass) {
  auto rng = test::test_rng();
  for (const u64 n : {3u, 8u, 500u, 1024u})
    for (const double p : {0.25, 1.0 / 3, 0.5})
      for (u32 round = 0; round < 2000; ++round) {
        u64 count = 0;
        for (u64 i = 0; i < n; ++i) count += static_cast<double>(rng()) < p * 0x1p64 ? 1 : 0;
        EXPECT_TRUE(plausible_count(count, n, p)) << count << " of " << n << " at " << p;
      }
}

}  // namespace
}  // namespace crenel::random
