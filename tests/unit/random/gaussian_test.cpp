// Rounded Gaussians: moments, tails, every integer, no repetition.
#include "random/gaussian.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "support/seeds.h"

namespace crenel::random {
namespace {

using test::random_seed;

TEST(Gaussian, MomentsAndTails) {
  auto rng = test::test_rng();
  constexpr int kCount = 200000;
  for (double std : {3.0, 1e6, 0x1p48}) {
    GaussianSource draw(random_seed(rng), {Purpose::flooding, rng()}, std);
    double sum = 0, square = 0, fourth = 0;
    int beyond = 0;
    for (int i = 0; i < kCount; ++i) {
      const double x = static_cast<double>(draw()) / std;
      sum += x, square += x * x, fourth += x * x * x * x;
      beyond += std::abs(x) > 3.0;
    }
    // Six standard deviations of each mean.
    EXPECT_LT(std::abs(sum / kCount), 6 / std::sqrt(kCount)) << std;
    EXPECT_NEAR(square / kCount, 1.0 + 1 / (12 * std * std), 6 * std::sqrt(2.0 / kCount)) << std;
    EXPECT_NEAR(fourth / kCount, 3.0, 6 * std::sqrt(96.0 / kCount) + 1 / (std * std)) << std;
    if (std < 10) continue;  // rounding moves the border
    EXPECT_NEAR(beyond / double(kCount), std::erfc(3 / std::sqrt(2.0)), 7e-4) << std;
  }
}

TEST(Gaussian, LargeDeviationsReachEveryResidue) {
  // Were samples multiples of a power of two, low bits of what they hide would come through.
  auto rng = test::test_rng();
  GaussianSource draw(random_seed(rng), {Purpose::flooding, rng()}, kMaxGaussianStd);
  int odd = 0;
  constexpr int kCount = 4096;
  for (int i = 0; i < kCount; ++i) odd += static_cast<int>(draw() & 1);
  EXPECT_NEAR(odd / double(kCount), 0.5, 6 * 0.5 / std::sqrt(kCount));
}

TEST(Gaussian, OneStreamANonce) {
  auto rng = test::test_rng();
  const Seed seed = random_seed(rng);
  GaussianSource a(seed, {Purpose::flooding, 1}, 0x1p40), b(seed, {Purpose::flooding, 2}, 0x1p40),
      again(seed, {Purpose::flooding, 1}, 0x1p40);
  std::set<i64> seen;
  for (int i = 0; i < 100; ++i) {
    const i64 x = a();
    EXPECT_EQ(x, again());
    EXPECT_TRUE(seen.insert(x).second);
    EXPECT_TRUE(seen.insert(b()).second);
  }
}

}  // namespace
}  // namespace crenel::random
