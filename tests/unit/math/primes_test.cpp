#include "math/primes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace crenel::math {
namespace {

TEST(Primes, AgreesWithTheSieveBelow200000) {
  constexpr std::size_t kLimit = 200000;
  std::vector<bool> composite(kLimit, false);
  for (std::size_t i = 2; i < kLimit; ++i) {
    EXPECT_EQ(is_prime(i), !composite[i]) << i;
    for (std::size_t j = i * i; j < kLimit; j += i) composite[j] = true;
  }
  EXPECT_FALSE(is_prime(0));
  EXPECT_FALSE(is_prime(1));
}

TEST(Primes, RefusesStrongPseudoprimes) {
  // Smallest composites that pass Miller-Rabin for the first k prime bases, k = 1..9 (OEIS
  // A014233), and Carmichael numbers.
  for (const u64 n :
       {2047ull, 1373653ull, 25326001ull, 3215031751ull, 2152302898747ull, 3474749660383ull,
        341550071728321ull, 3825123056546413051ull, 561ull, 1729ull, 9746347772161ull})
    EXPECT_FALSE(is_prime(n)) << n;
}

TEST(Primes, KnowsLargeOnes) {
  EXPECT_TRUE(is_prime(0xffffffffffffffc5u));  // largest below 2^64
  EXPECT_TRUE(is_prime(0xffffffff00000001u));  // 2^64 - 2^32 + 1
  EXPECT_TRUE(is_prime((u64{1} << 61) - 1));
  EXPECT_TRUE(is_prime((u64{1} << 31) - 1));
  EXPECT_FALSE(is_prime(u64{0xffffffff}));
  EXPECT_FALSE(is_prime(0xffffffffffffffffu));
  EXPECT_FALSE(is_prime(u64{4294967291} * 4294967279));  // product of the two largest 32-bit primes
}

TEST(Primes, FindsTheNineTerminalPrimes) {
  const std::vector<u64> expected{29884417, 30539777, 31326209, 32899073, 33292289,
                                  35389441, 36175873, 37224449, 38535169};
  EXPECT_EQ(ntt_primes(29210829, 38543921, 1 << 17), expected);  // 2^24.8 .. 2^25.2
}

TEST(Primes, CountsTheSpecialCandidates) {
  EXPECT_EQ(ntt_primes(2003672383, u64{1} << 31, 1 << 17).size(), 92u);  // 2^30.9 .. 2^31
}

TEST(Primes, RangeIsHalfOpen) {
  EXPECT_EQ(ntt_primes(786433, 786434, 1 << 17), std::vector<u64>{786433});
  EXPECT_TRUE(ntt_primes(786434, 1179649, 1 << 17).empty());
  EXPECT_TRUE(ntt_primes(100, 100, 2).empty());
  EXPECT_TRUE(ntt_primes(0, 1, 2).empty());
  EXPECT_EQ(ntt_primes(0, 12, 2), (std::vector<u64>{3, 5, 7, 11}));
  EXPECT_EQ(ntt_primes(2, 12, 2), (std::vector<u64>{3, 5, 7, 11}));
}

TEST(Primes, NearestComeInOrderOfDistance) {
  constexpr u64 kCenter = u64{1} << 30, kLow = kCenter / 2, kHigh = kCenter * 2;
  for (const u64 two_n : {u64{1} << 11, u64{1} << 17, u64{1} << 18}) {
    const std::vector<u64> nearest = nearest_ntt_primes(kCenter, 20, kLow, kHigh, two_n);
    std::vector<u64> all = ntt_primes(kCenter - 40000000, kCenter + 40000000, two_n);
    const auto distance = [](u64 p) { return p < kCenter ? kCenter - p : p - kCenter; };
    std::stable_sort(all.begin(), all.end(),
                     [&](u64 a, u64 b) { return distance(a) < distance(b); });
    ASSERT_GE(all.size(), nearest.size());
    ASSERT_EQ(nearest.size(), 20u);
    EXPECT_TRUE(std::equal(nearest.begin(), nearest.end(), all.begin())) << two_n;
  }
}

TEST(Primes, NearestStopsAtTheRange) {
  const u64 low = 29210829, high = 38543921;
  std::vector<u64> nearest = nearest_ntt_primes(u64{1} << 25, 100, low, high, 1 << 17);
  std::sort(nearest.begin(), nearest.end());
  EXPECT_EQ(nearest, ntt_primes(low, high, 1 << 17));
  const u64 top = u64{1} << 31;  // a centre at the edge: everything is below
  const std::vector<u64> below = nearest_ntt_primes(top - 1, 3, top / 2, top, 1 << 17);
  EXPECT_EQ(below, (std::vector<u64>{2147352577, 2146959361, 2146041857}));
}

}  // namespace
}  // namespace crenel::math
