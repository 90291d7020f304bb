// Numbers of short levels, what keys serve them, and the primes that they have.
#include <gtest/gtest.h>

#include <cmath>

#include "ckks/params/chain.h"
#include "rlwe/key_levels.h"

namespace crenel::rlwe {
namespace {

constexpr u32 kAny = SwitchKey::kAny;

TEST(ShortLevels, AreNumbersOfTheirOwn) {
  for (u32 base : {0u, 7u, 200u})
    for (u32 level : {1u, 16u, 255u}) {
      const u32 n = short_level(base, level);
      EXPECT_TRUE(is_short(n));
      EXPECT_EQ(base_of(n), base);
      EXPECT_EQ(ordinary(n), level);
      EXPECT_EQ(n - 1, short_level(base, level - 1)) << "a rescale goes to the number before";
    }
  for (u32 level : {0u, 28u, 255u, kAny}) EXPECT_FALSE(is_short(level));
  EXPECT_EQ(highest_ordinary(short_level(7, 24)), 7u);
  EXPECT_EQ(highest_ordinary(24), 24u);
}

// By the primes: a key has all of what it is said to serve.
TEST(ShortLevels, KeysServeWhatTheyHavePrimesFor) {
  const ckks::Params params = ckks::Params::preset("toy-boot40", true);
  const Chain chain = ckks::chain_of(params);
  std::vector<u32> levels{kAny};
  for (u32 l = 0; l <= params.max_level(); ++l) levels.push_back(l);
  for (u32 base : {7u, 10u, 13u})
    for (u32 l = 17; l <= params.max_level(); ++l) levels.push_back(short_level(base, l));
  const auto primes = [&](u32 key) {
    const u32 top = params.max_level();
    return key_extent(chain, key == kAny ? top : key).limbs;
  };
  for (u32 key : levels)
    for (u32 level : levels) {
      if (level == kAny) continue;
      SCOPED_TRACE(cat("key ", key, ", level ", level));
      if (serves(key, level)) {
        EXPECT_TRUE(primes(key).contains_all(chain.limbs(level)));
      }
      const u32 least = both(key, level);
      EXPECT_TRUE(serves(least, level));
      EXPECT_EQ(least, both(level, key));
      if (key != kAny) {
        EXPECT_TRUE(serves(least, key));
      }
    }
  EXPECT_FALSE(serves(short_level(7, 28), 8)) << "a level above the base";
  EXPECT_FALSE(serves(short_level(7, 28), short_level(10, 24))) << "a base above";
  EXPECT_FALSE(serves(short_level(10, 24), short_level(7, 25))) << "more of the upper primes";
  EXPECT_FALSE(serves(23, short_level(7, 24)));
  EXPECT_EQ(both(short_level(10, 24), short_level(7, 27)), short_level(10, 27));
  EXPECT_EQ(both(short_level(7, 27), 16), 27u);
}

TEST(ShortLevels, OfBoot40) {
  const ckks::Params params = ckks::Params::preset("toy-boot40", true);
  const Chain chain = ckks::chain_of(params);
  std::vector<u32> bases;
  for (u32 l = 0; l <= params.max_level(); ++l)
    if (params.is_short_base(l)) bases.push_back(l);
  EXPECT_EQ(bases, (std::vector<u32>{7, 10, 13}));
  for (u32 base : bases) {
    EXPECT_EQ(chain.limbs(short_level(base, 16)), chain.limbs(base)) << "the foot is the base";
    for (u32 l = 17; l <= params.max_level(); ++l) {
      const u32 level = short_level(base, l);
      EXPECT_EQ(chain.limbs(level).size(), params.limb_count(level));
      EXPECT_EQ(chain.limbs(level).minus(chain.limbs(level - 1)),
                chain.limbs(l).minus(chain.limbs(l - 1)))
          << "another rescale than that of level " << l;
      EXPECT_EQ(params.rescale_ratio(level), params.rescale_ratio(l));
      EXPECT_NEAR(params.log_q(level) - params.log_q(level - 1), std::log2(params.rescale_ratio(l)),
                  1e-9);
    }
  }
  // No level of a set without bootstraps, and none whose digits are not neighbours.
  EXPECT_FALSE(chain.has_level(short_level(4, 20)));
  EXPECT_FALSE(chain.has_level(short_level(5, 20)));
  EXPECT_FALSE(chain.has_level(short_level(16, 20)));
  EXPECT_FALSE(chain.has_level(short_level(7, 29)));
  EXPECT_FALSE(ckks::Params::preset("toy-leveled-n13-s40", true).is_short_base(1));
}

}  // namespace
}  // namespace crenel::rlwe
