// Generated chains, the overflow-free base-conversion condition, and the security tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>

#include "ckks/params/base_conversion.h"
#include "ckks/params/prime_system.h"
#include "ckks/params/security.h"
#include "ckks/params/validate.h"
#include "crenel/ckks/params.h"
#include "crenel/core/error.h"
#include "math/primes.h"

namespace crenel::ckks {
namespace {

// sum_j ((D / d_j) mod p) (d_j - 1) + p the slow way: every product from scratch, sum in 128 bits.
u128 slow_bound(const std::vector<u64>& sources, u64 target) {
  u128 sum = target;
  for (std::size_t j = 0; j < sources.size(); ++j) {
    u128 table = 1;
    for (std::size_t k = 0; k < sources.size(); ++k)
      if (k != j) table = table * sources[k] % target;
    sum += table * (sources[j] - 1);
  }
  return sum;
}

// Walks every level and digit on its own, without digit_groups(). Returns the number of violations.
int count_overflows(const Spec& spec) {
  const auto terminals = static_cast<int>(spec.terminal.size());
  const auto alpha = static_cast<int>(spec.auxiliary.size());
  std::vector<u64> chain(spec.terminal.rbegin(), spec.terminal.rend());
  chain.insert(chain.end(), spec.main.begin(), spec.main.end());
  int overflows = 0;
  const auto check = [&](const std::vector<u64>& sources, u64 target) {
    const u128 bound = slow_bound(sources, target);
    EXPECT_EQ(bound, conversion_bound(sources, target));
    if (bound > std::numeric_limits<u64>::max()) ++overflows;
  };
  for (const LevelModulus& level : spec.levels) {
    const int low = terminals - static_cast<int>(level.terminal);
    const int high = terminals + static_cast<int>(level.main);
    for (int block = 0; block < static_cast<int>(chain.size()); block += alpha) {
      std::vector<u64> sources, targets(spec.auxiliary);
      for (int i = low; i < high; ++i)
        (i / alpha * alpha == block ? sources : targets).push_back(chain[i]);
      if (sources.empty()) continue;
      for (const u64 target : targets) check(sources, target);
    }
  }
  for (const u64 q : chain) check(spec.auxiliary, q);
  return overflows;
}

TEST(BaseConversion, NoNamedSetOverflows) {
  for (const std::string& name : Params::preset_names())
    if (!name.starts_with("toy-")) {
      EXPECT_EQ(count_overflows(Params::preset(name).spec()), 0) << name;
    }
}

TEST(BaseConversion, ReproducesThePublishedMaxima) {
  const Spec spec = Params::preset("boot40").spec();
  const std::vector<u64> chain = chain_in_position_order(spec);
  const std::vector<DigitGroup> groups = digit_groups(spec, 12);
  EXPECT_EQ(groups.size(), 30u);
  u128 into_q = 0, into_p = 0, down = 0;
  for (const DigitGroup& g : groups) {
    const std::span<const u64> sources(chain.data() + g.begin, g.end - g.begin);
    for (u32 i = 0; i < chain.size(); ++i)
      if (i < g.begin || i >= g.end) into_q = std::max(into_q, conversion_bound(sources, chain[i]));
    for (const u64 p : spec.auxiliary) into_p = std::max(into_p, conversion_bound(sources, p));
  }
  for (const u64 q : chain) down = std::max(down, conversion_bound(spec.auxiliary, q));
  EXPECT_NEAR(std::log2(static_cast<double>(into_q)), 62.855, 1e-3);
  EXPECT_NEAR(std::log2(static_cast<double>(into_p)), 63.90, 5e-3);
  EXPECT_NEAR(std::log2(static_cast<double>(down)), 63.890, 1e-3);
}

TEST(BaseConversion, ValidateRefusesExactlyTheOverflowingChoices) {
  // Random selections of special primes: about every second one breaks the condition.
  Spec spec = Params::preset("boot40").spec();
  std::vector<u64> pool =
      math::nearest_ntt_primes(kPrimeMax - 1, 60, u64{1} << 30, kPrimeMax, u64{2} << spec.log_n);
  int good = 0, bad = 0;
  SearchRng rng(7);
  for (int i = 0; i < 40; ++i) {
    for (std::size_t k = 0; k < 12; ++k) std::swap(pool[k], pool[k + rng.below(pool.size() - k)]);
    spec.auxiliary.assign(pool.begin(), pool.begin() + 12);
    int reported = 0;
    for (const SpecProblem& problem : Params::validate(spec, true))
      reported += problem.kind == SpecProblemKind::base_conversion_overflow;
    const bool overflows = count_overflows(spec) > 0;
    EXPECT_EQ(reported > 0, overflows);
    ++(overflows ? bad : good);
  }
  EXPECT_GT(good, 0);
  EXPECT_GT(bad, 0);
  std::cout << "overflow condition: " << good << " good, " << bad << " refused selections\n";
}

TEST(PrimeSystem, CycleFollowsTheRule) {
  using L = std::vector<LevelModulus>;
  EXPECT_EQ(rescaling_levels(28, 2), (L{{2, 0}, {3, 0}, {4, 0}}));
  EXPECT_EQ(rescaling_levels(30, 2), (L{{2, 0}, {3, 0}, {4, 0}}));
  EXPECT_EQ(rescaling_levels(35, 4), (L{{0, 2}, {2, 1}, {4, 0}, {1, 5}, {3, 4}}));
  EXPECT_EQ(rescaling_levels(40, 4), (L{{0, 2}, {3, 0}, {1, 4}, {4, 2}, {7, 0}}));
  EXPECT_EQ(rescaling_levels(45, 3), (L{{2, 0}, {1, 3}, {5, 0}, {4, 3}}));
  EXPECT_EQ(rescaling_levels(50, 4), (L{{2, 0}, {2, 2}, {2, 4}, {7, 0}, {7, 2}}));
  for (const auto& [name, bits] : {std::pair{"boot30", 30u},
                                   {"boot35", 35u},
                                   {"boot40", 40u},
                                   {"boot45", 45u},
                                   {"boot50", 50u}}) {
    const Spec spec = Params::preset(name).spec();
    L normal(spec.levels.begin(), spec.levels.begin() + spec.normal_top_level + 1);
    EXPECT_EQ(rescaling_levels(bits, spec.normal_top_level), normal) << name;
  }
}

TEST(PrimeSystem, GeneratesOverTheGrid) {
  // Depths from a printed seed, so that every run of a changed seed is reproducible.
  constexpr u64 kSeed = 20250611;
  std::cout << "grid seed " << kSeed << "\n";
  SearchRng rng(kSeed);
  double worst = 0;
  for (u32 log_n = 10; log_n <= 17; ++log_n)
    for (const u32 bits : {30u, 35u, 40u, 45u, 50u})
      for (const std::size_t limit : {4u, 12u, 40u}) {
        const u32 depth = 1 + static_cast<u32>(rng.below(limit));
        SCOPED_TRACE(cat("log_n ", log_n, " scale ", bits, " depth ", depth));
        const Params params = Params::generate(log_n, bits, depth, true);
        EXPECT_EQ(params.max_level(), depth);
        EXPECT_EQ(params.normal_top_level(), depth);
        EXPECT_LE(params.scale_deviation(), kMaxScaleDeviation);
        EXPECT_NEAR(params.log_q(depth) - params.log_q(0), bits * depth, 0.25);
        EXPECT_EQ(count_overflows(params.spec()), 0);
        worst = std::max(worst, params.scale_deviation());
      }
  std::cout << "largest scale deviation over the grid: " << worst << " bits\n";
}

TEST(PrimeSystem, GeneratesAtTwentyEightBits) {
  for (u32 log_n = 10; log_n <= 17; ++log_n)
    for (const u32 depth : {1u, 5u, 10u}) {
      SCOPED_TRACE(cat("log_n ", log_n, " depth ", depth));
      const Params params = Params::generate(log_n, 28, depth, true);
      EXPECT_LE(params.scale_deviation(), 0.02);
      EXPECT_GE(params.log_q(0), 37.7);  // 9.7 bits above the scale, as at 30 bits
      EXPECT_NEAR(params.log_q(depth) - params.log_q(0), 28.0 * depth, 0.1);
      EXPECT_EQ(count_overflows(params.spec()), 0);
    }
}

TEST(PrimeSystem, GenerateIsDeterministicAndAsGoodAsThePublishedSearch) {
  EXPECT_TRUE(Params::generate(15, 40, 8) == Params::generate(15, 40, 8));
  EXPECT_LE(Params::generate(16, 40, 16).scale_deviation(), 0.0021);
  EXPECT_LE(Params::generate(16, 35, 18).scale_deviation(), 0.0055);
  EXPECT_LE(Params::generate(16, 30, 21).scale_deviation(), 0.0096);
}

TEST(PrimeSystem, AsksForFewDigitsAndStaysSecure) {
  struct Case {
    u32 log_n, bits, depth;
  };
  for (const Case& c : {Case{15, 40, 8},
                        {14, 40, 4},
                        {14, 40, 5},
                        {16, 40, 20},
                        {13, 28, 3},
                        {13, 30, 3},
                        {15, 50, 10}}) {
    const Params params = Params::generate(c.log_n, c.bits, c.depth);
    EXPECT_LE(params.log_pq(), *max_log_pq(c.log_n, 128, 0));
    EXPECT_GE(params.dnum(), 3u);
    EXPECT_LE(params.dnum(), 4u);
    EXPECT_FALSE(params.insecure());
  }
  EXPECT_EQ(Params::generate(15, 40, 8, false, 8).alpha(), 8u);
  EXPECT_NEAR(Params::generate(15, 40, 8).log_q(0), 50, 0.1);  // room for decrypted values
}

TEST(PrimeSystem, LeveledSetsAreFull) {
  struct Set {
    const char* name;
    u32 log_n, bits;
  };
  for (const Set& set : {Set{"leveled-n13-s28", 13, 28}, Set{"leveled-n13-s30", 13, 30},
                         Set{"leveled-n13-s40", 13, 40}, Set{"leveled-n14-s30", 14, 30},
                         Set{"leveled-n14-s40", 14, 40}, Set{"leveled-n15-s40", 15, 40},
                         Set{"leveled-n15-s50", 15, 50}, Set{"leveled-n16-s40", 16, 40},
                         Set{"leveled-n16-s50", 16, 50}}) {
    const Params params = Params::preset(set.name);
    EXPECT_EQ(params.log_n(), set.log_n);
    // One more level with as many special primes would not be secure.
    EXPECT_THROW(
        Params::generate(set.log_n, set.bits, params.max_level() + 1, false, params.alpha()),
        ParameterError)
        << set.name;
  }
}

TEST(PrimeSystem, RefusesWithTheNumbers) {
  try {
    Params::generate(14, 40, 12);
    FAIL();
  } catch (const ParameterError& error) {
    EXPECT_EQ(error.field("bound"), "430");
    EXPECT_NEAR(std::stod(error.field("log_pq")), 611.0, 0.05) << error.what();
  }
  EXPECT_THROW(Params::generate(9, 40, 2), ParameterError);
  EXPECT_THROW(Params::generate(18, 40, 2), ParameterError);
  EXPECT_THROW(Params::generate(15, 41, 2), ParameterError);
  EXPECT_THROW(Params::generate(15, 40, 0), ParameterError);
  EXPECT_THROW(Params::generate(15, 40, 4000000000u), ParameterError);
  EXPECT_THROW(Params::generate(15, 40, 8, false, 15), ParameterError);
  EXPECT_THROW(Params::generate(17, 50, 120, true), ParameterError);  // too many limbs
  EXPECT_THROW(Params::generate(10, 30, 1), ParameterError);          // never secure
}

TEST(Security, BoundsAreTheTables) {
  EXPECT_EQ(max_log_pq(14, 128, 0), 430);
  EXPECT_EQ(max_log_pq(15, 128, 0), 868);
  EXPECT_EQ(max_log_pq(16, 128, 0), 1747);
  EXPECT_EQ(max_log_pq(17, 128, 0), 3523);
  EXPECT_EQ(max_log_pq(16, 192, 0), 1199);
  EXPECT_EQ(max_log_pq(16, 256, 0), 929);
  EXPECT_EQ(max_log_pq(16, 128, 32), 349);
  EXPECT_EQ(max_log_pq(16, 128, 191), 1351);  // between two columns: the lighter one
  EXPECT_EQ(max_log_pq(16, 128, 192), 1481);
  EXPECT_EQ(max_log_pq(16, 128, 30000), 1714);
  EXPECT_EQ(max_log_pq(12, 128, 1024), 106);  // never above the dense bound
  EXPECT_EQ(max_log_pq(16, 128, 31), std::nullopt);
  EXPECT_EQ(max_log_pq(17, 128, 64), std::nullopt);
  EXPECT_EQ(max_log_pq(16, 192, 64), std::nullopt);
  EXPECT_EQ(max_log_pq(9, 128, 0), std::nullopt);
  EXPECT_EQ(max_log_pq(18, 128, 0), std::nullopt);
  EXPECT_EQ(max_log_pq(16, 100, 0), std::nullopt);
}

TEST(Security, EstimateAgreesWithTheBoundsAtTheEdge) {
  for (u32 log_n = 10; log_n <= 17; ++log_n)
    for (const u32 weight : {0u, 32u, 64u, 192u, 1024u}) {
      const auto bound = max_log_pq(log_n, 128, weight);
      if (!bound) {
        EXPECT_EQ(estimate_security_bits(log_n, 100, weight), 0);
        continue;
      }
      EXPECT_GE(estimate_security_bits(log_n, *bound, weight), 128);
      EXPECT_LT(estimate_security_bits(log_n, std::nextafter(*bound, 1e9), weight), 128);
      double before = 1e9;  // non-increasing, at most 256
      for (double log_pq = 1; log_pq < 4000; log_pq *= 1.05) {
        const double bits = estimate_security_bits(log_n, log_pq, weight);
        EXPECT_LE(bits, std::min(before, 256.0));
        before = bits;
      }
    }
  for (const u32 bits : {192u, 256u})
    EXPECT_NEAR(estimate_security_bits(16, *max_log_pq(16, bits, 0), 0), bits, 1e-9);
}

TEST(Security, RefusalIsAtTheEdge) {
  // boot40 under the sparse bound of weight 1024 (1714) fails, boot48dr (1709.81) passes.
  Spec over = Params::preset("boot40").spec(), under = Params::preset("boot48dr").spec();
  over.hamming_weight = under.hamming_weight = 1024;
  EXPECT_THROW(Params::from_spec(over), ParameterError);
  EXPECT_EQ(Params::from_spec(under).security_bits(), 128);
}

}  // namespace
}  // namespace crenel::ckks
