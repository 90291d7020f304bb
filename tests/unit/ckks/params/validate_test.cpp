// Every refusal of Params::validate().
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <set>

#include "crenel/ckks/params.h"

namespace crenel::ckks {

using Kind = SpecProblemKind;

void PrintTo(SpecProblemKind kind, std::ostream* out) { *out << to_string(kind); }

namespace {

std::set<Kind> kinds(const std::function<void(Spec&)>& change, bool allow_insecure = true) {
  Spec spec = Params::preset("boot40").spec();
  change(spec);
  std::set<Kind> found;
  for (const SpecProblem& problem : Params::validate(spec, allow_insecure)) {
    EXPECT_FALSE(problem.message.empty());
    found.insert(problem.kind);
  }
  return found;
}

TEST(CkksParamsValidate, AcceptsAGoodSet) {
  EXPECT_TRUE(kinds([](Spec&) {}, false).empty());
}

TEST(CkksParamsValidate, RefusesBadPrimes) {
  EXPECT_TRUE(kinds([](Spec& s) { s.main[5] = 1073741825; }).contains(Kind::prime_not_prime));
  EXPECT_TRUE(
      kinds([](Spec& s) { s.main[39] = 1073741827; }).contains(Kind::prime_not_ntt_friendly));
  EXPECT_EQ(kinds([](Spec& s) { s.main[39] = 2281701377; }), std::set{Kind::prime_out_of_range});
  EXPECT_EQ(kinds([](Spec& s) { s.log_n = 13, s.main[39] = 147457; }),
            std::set{Kind::prime_out_of_range});
  EXPECT_TRUE(kinds([](Spec& s) { s.terminal[1] = s.terminal[0]; }).contains(Kind::prime_repeated));
  const std::set<Kind> zero = kinds([](Spec& s) { s.auxiliary[0] = 0; });
  EXPECT_TRUE(zero.contains(Kind::prime_out_of_range) && zero.contains(Kind::prime_not_prime));
}

TEST(CkksParamsValidate, RefusesBadRings) {
  EXPECT_EQ(kinds([](Spec& s) { s.log_n = 9; }), std::set{Kind::log_n_out_of_range});
  EXPECT_EQ(kinds([](Spec& s) { s.log_n = 40; }, false), std::set{Kind::log_n_out_of_range});
  // Half of these primes are 1 modulo 2^17 only.
  EXPECT_EQ(kinds([](Spec& s) { s.log_n = 17; }), std::set{Kind::prime_not_ntt_friendly});
  EXPECT_EQ(kinds([](Spec& s) { s.hamming_weight = 65537; }),
            std::set{Kind::hamming_weight_out_of_range});
  EXPECT_EQ(kinds([](Spec& s) { s.log_n = 15; }, false), std::set{Kind::security_below_128});
  EXPECT_EQ(kinds([](Spec& s) { s.hamming_weight = 256; }, false),
            std::set{Kind::security_below_128});
  EXPECT_EQ(kinds([](Spec& s) { s.hamming_weight = 16; }, false),
            std::set{Kind::security_below_128});
}

TEST(CkksParamsValidate, RefusesBadLevels) {
  EXPECT_EQ(kinds([](Spec& s) { s.levels[28].main = 44; }), std::set{Kind::level_out_of_chain});
  EXPECT_EQ(kinds([](Spec& s) { s.levels[0] = {0, 0}; }), std::set{Kind::level_out_of_chain});
  EXPECT_EQ(kinds([](Spec& s) { s.normal_top_level = 29; }), std::set{Kind::level_out_of_chain});
  EXPECT_EQ(kinds([](Spec& s) { std::swap(s.levels[18], s.levels[19]); }),
            std::set{Kind::level_not_increasing});
  // More bits, but a terminal prime fewer: allowed in the rescaling cycle, not above it.
  EXPECT_EQ(kinds([](Spec& s) { s.levels[17] = {24, 1}; }), std::set{Kind::level_not_increasing});
  EXPECT_EQ(kinds([](Spec& s) { s.levels[20] = s.levels[19]; }),
            std::set{Kind::level_not_increasing});
  EXPECT_EQ(kinds([](Spec& s) { s.main.push_back(1068236801); }),
            std::set{Kind::chain_top_incomplete});
  EXPECT_EQ(kinds([](Spec& s) { s.levels.push_back({42, 4}); }),
            (std::set{Kind::level_not_increasing, Kind::chain_top_incomplete}));
  EXPECT_EQ(kinds([](Spec& s) { s.levels.clear(); }), std::set{Kind::empty_chain});
  EXPECT_EQ(kinds([](Spec& s) { s.main.clear(), s.terminal.clear(); }),
            std::set{Kind::empty_chain});
  EXPECT_EQ(kinds([](Spec& s) { s.main.resize(1000, 786433); }), std::set{Kind::too_many_limbs});
  EXPECT_EQ(kinds([](Spec& s) { s.auxiliary.resize(15, 786433); }), std::set{Kind::too_many_limbs});
  EXPECT_EQ(kinds([](Spec& s) { s.levels.resize(1000, {43, 4}); }), std::set{Kind::too_many_limbs});
}

TEST(CkksParamsValidate, RefusesBadScalesAndModuli) {
  EXPECT_TRUE(kinds([](Spec& s) { s.log_scale = 39; }).contains(Kind::scale_deviation));
  EXPECT_TRUE(kinds([](Spec& s) { s.log_scale = 0xffffffff; }).contains(Kind::scale_deviation));
  EXPECT_TRUE(kinds([](Spec& s) { s.log_scale = 48; }).contains(Kind::base_modulus_too_small));
  EXPECT_EQ(kinds([](Spec& s) { s.auxiliary.clear(); }), std::set{Kind::special_modulus_too_small});
  EXPECT_TRUE(kinds([](Spec& s) {
                s.auxiliary[0] = 786433, s.auxiliary[1] = 1179649;
              }).contains(Kind::special_modulus_too_small));
}

TEST(CkksParamsValidate, SurvivesGarbage) {
  u64 state = 12345;
  const auto next = [&state] {
    return state = state * 6364136223846793005u + 1442695040888963407u;
  };
  for (int i = 0; i < 300; ++i) {
    Spec spec = Params::preset("boot40").spec();
    for (int change = 0; change < 3; ++change) {
      const u64 value = next() >> (next() >> 58), where = next() >> 32;
      switch (next() >> 61) {
        case 0:
          spec.main[where % spec.main.size()] = value;
          break;
        case 1:
          spec.auxiliary[where % spec.auxiliary.size()] = value;
          break;
        case 2:
          spec.levels[where % spec.levels.size()].main = static_cast<u32>(value);
          break;
        case 3:
          spec.levels[where % spec.levels.size()].terminal = static_cast<u32>(value);
          break;
        case 4:
          spec.log_scale = static_cast<u32>(value);
          break;
        case 5:
          spec.normal_top_level = static_cast<u32>(value);
          break;
        case 6:
          spec.log_n = static_cast<u32>(value);
          break;
        default:
          spec.auxiliary.resize(1 + where % spec.auxiliary.size());
          break;
      }
    }
    EXPECT_NO_THROW(Params::validate(spec));
  }
}

TEST(CkksParamsValidate, CollectsAllProblems) {
  const std::set<Kind> found = kinds(
      [](Spec& s) {
        s.main[0] = 15, s.levels[3].main = 99, s.normal_top_level = 77, s.hamming_weight = 1u << 30;
      },
      false);
  EXPECT_EQ(found,
            (std::set{Kind::prime_not_prime, Kind::prime_not_ntt_friendly, Kind::prime_out_of_range,
                      Kind::level_out_of_chain, Kind::hamming_weight_out_of_range}));
}

}  // namespace
}  // namespace crenel::ckks
