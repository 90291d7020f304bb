// Checks of TFHE specs, variants of a set, and what identifies one.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>

#include "crenel/core/error.h"
#include "crenel/tfhe/params.h"
#include "device/torus/plan.h"
#include "tfhe/params/plan.h"

namespace crenel::tfhe {
namespace {

struct Mutation {
  const char* expected;  // in some problem
  std::function<void(Spec&)> change;
};

void expect_problems(const std::string& preset, const std::vector<Mutation>& mutations) {
  for (const Mutation& mutation : mutations) {
    Spec spec = Params::preset(preset, true).spec();
    mutation.change(spec);
    std::string all;
    for (const std::string& problem : Params::validate(spec)) all += problem + "\n";
    EXPECT_NE(all.find(mutation.expected), std::string::npos)
        << "expected '" << mutation.expected << "' among: " << all;
    EXPECT_THROW(Params::from_spec(spec), ParameterError) << mutation.expected;
  }
}

TEST(TfheParamsValidate, ValidateNamesWhatIsWrong) {
  expect_problems(
      "bool128-classic",
      {{"lwe_dim is 0", [](Spec& s) { s.lwe_dim = LweDim(0); }},
       {"lwe_dim is 70000", [](Spec& s) { s.lwe_dim = LweDim(70000); }},
       {"glwe_dim is 17", [](Spec& s) { s.glwe_dim = GlweDim(17); }},
       {"poly_size is 500", [](Spec& s) { s.poly_size = PolySize(500); }},
       {"poly_size is 8192", [](Spec& s) { s.poly_size = PolySize(8192); }},
       {"poly_size is 0", [](Spec& s) { s.poly_size = PolySize(0); }},
       {"log_lwe_modulus is 33", [](Spec& s) { s.log_lwe_modulus = 33; }},
       {"log_lwe_modulus is 0", [](Spec& s) { s.log_lwe_modulus = 0; }},
       {"log_modulus is 0", [](Spec& s) { s.log_modulus = 0; }},
       {"log_raised_modulus is 33, expected at least 2 log_modulus = 34",
        [](Spec& s) { s.log_raised_modulus = 33; }},
       {"log_raised_modulus is 56", [](Spec& s) { s.log_raised_modulus = 56; }},
       {"base_log is 7, expected 0", [](Spec& s) { s.base_log = DecompBaseLog(7); }},
       {"log_switch_modulus is 9, expected at least 10", [](Spec& s) { s.log_switch_modulus = 9; }},
       {"log_switch_modulus is 41", [](Spec& s) { s.log_switch_modulus = 41; }},
       {"switch_base_log is 0", [](Spec& s) { s.switch_base_log = DecompBaseLog(0); }},
       {"switch_base_log is 17", [](Spec& s) { s.switch_base_log = DecompBaseLog(17); }},
       {"plain_modulus is 3", [](Spec& s) { s.plain_modulus = 3; }},
       {"plain_modulus is 0", [](Spec& s) { s.plain_modulus = 0; }},
       {"plain_modulus is 512", [](Spec& s) { s.plain_modulus = 512; }},
       {"plain_modulus is 6, expected a power of two",
        [](Spec& s) { s.plain_modulus = 6, s.padded = true; }},
       {"max_norm2 is 0.5", [](Spec& s) { s.max_norm2 = 0.5; }},
       {"max_norm2 is nan", [](Spec& s) { s.max_norm2 = std::nan(""); }},
       {"security_bits is -1", [](Spec& s) { s.security_bits = -1; }},
       {"security_bits is 192", [](Spec& s) { s.security_bits = 192; }}});
  expect_problems("STD128", {{"log_modulus is 56", [](Spec& s) { s.log_modulus = 56; }},
                             {"log_raised_modulus is 41, expected 0",
                              [](Spec& s) { s.log_raised_modulus = 41; }},
                             {"base_log is 0", [](Spec& s) { s.base_log = DecompBaseLog(0); }},
                             {"base_log is 27", [](Spec& s) { s.base_log = DecompBaseLog(27); }},
                             {"no primes = 1 modulo 2N = 2048",
                              [](Spec& s) { s.log_modulus = 11, s.base_log = DecompBaseLog(4); }}});
  expect_problems("G4",
                  {{"arithmetic is approx", [](Spec& s) { s.arithmetic = Arithmetic::approx; }}});
  for (const char* name : {"bool128-classic", "STD128"})
    expect_problems(name,
                    {{"arithmetic = split", [](Spec& s) { s.arithmetic = Arithmetic::split; }}});
}

TEST(TfheParamsValidate, AllProblemsAtOnce) {
  const Spec nothing;
  EXPECT_GE(Params::validate(nothing).size(), 6u);
  try {
    Params::from_spec(nothing);
    FAIL();
  } catch (const ParameterError& error) {
    EXPECT_EQ(error.fields().size(), Params::validate(nothing).size());
  }
}

TEST(TfheParamsVariants, Slots) {
  const Params one = Params::preset("M6");
  const Params four = one.with_slots(SlotCount(4));
  EXPECT_EQ(one.slots().value, 1u);
  EXPECT_EQ(four.slots().value, 4u);
  EXPECT_GT(four.p_fail_log2(), one.p_fail_log2());
  EXPECT_FALSE(four == one);
  EXPECT_EQ(four.with_slots(SlotCount(1)), one);
  for (const u32 bad : {0u, 17u}) {
    try {
      one.with_slots(SlotCount(bad));
      FAIL();
    } catch (const ParameterError& error) {
      EXPECT_EQ(error.field("slots"), std::to_string(bad));
    }
  }
}

// M2 and lut4-128-classic: products near 2^51, which are reduced modulo Q before their last
// rounding. The error that `approx` adds grows with the slots, and lut4-128-classic has room for
// that of 10.
TEST(TfheParamsVariants, LargeProductsKeepTheirSlots) {
  for (const std::string name : {"M2", "lut4-128-classic"})
    for (const auto arithmetic : {Arithmetic::approx, Arithmetic::exact}) {
      const u32 most = name == "lut4-128-classic" && arithmetic == Arithmetic::approx ? 10 : 16;
      const Params p =
          Params::preset(name, true).with_arithmetic(arithmetic).with_slots(SlotCount(most));
      EXPECT_EQ(p.slots().value, most) << name;
      EXPECT_TRUE(device::reduces_product(plan_of(p))) << name;
    }
  EXPECT_FALSE(device::reduces_product(plan_of(Params::preset("bool128-classic"))));
}

// Slots first or arithmetic first: the same is refused.
TEST(TfheParamsVariants, SlotsThatApproxCannotServeAreRefusedInAnyOrder) {
  const Params lut = Params::preset("lut4-128-classic", true);
  ASSERT_EQ(lut.arithmetic(), Arithmetic::approx);
  for (u32 slots = 11; slots <= 16; ++slots) {
    try {
      lut.with_slots(SlotCount(slots));
      ADD_FAILURE() << slots;
    } catch (const UnsupportedError& error) {
      EXPECT_EQ(error.field("slots"), std::to_string(slots));
      EXPECT_EQ(error.field("name"), "lut4-128-classic");
      EXPECT_NE(std::string(error.what()).find("transform's error"), std::string::npos);
    }
    const Params exact = lut.with_arithmetic(Arithmetic::exact).with_slots(SlotCount(slots));
    EXPECT_THROW(exact.with_arithmetic(Arithmetic::approx), UnsupportedError) << slots;
  }
  for (const u32 slots : {1u, 2u, 10u})
    EXPECT_EQ(lut.with_slots(SlotCount(slots)), lut.with_arithmetic(Arithmetic::exact)
                                                    .with_slots(SlotCount(slots))
                                                    .with_arithmetic(Arithmetic::approx));
}

TEST(TfheParamsVariants, ArithmeticIsChosenWhereItIsSafe) {
  const Params exact = Params::preset("bool128-classic").with_arithmetic(Arithmetic::exact);
  EXPECT_EQ(exact.arithmetic(), Arithmetic::exact);
  EXPECT_FALSE(exact == Params::preset("bool128-classic"));
  EXPECT_EQ(exact.with_arithmetic(Arithmetic::approx), Params::preset("bool128-classic"));
  EXPECT_EQ(exact.with_slots(SlotCount(3)).with_arithmetic(Arithmetic::approx).slots().value, 3u);
  for (const char* name : {"G1", "G2", "G3", "G5", "M1", "M2", "M3", "M4", "M5", "M6", "STD128"})
    EXPECT_EQ(Params::preset(name, true).with_arithmetic(Arithmetic::approx).arithmetic(),
              Arithmetic::approx)
        << name;
  try {
    Params::preset("G4").with_arithmetic(Arithmetic::approx);
    FAIL();
  } catch (const UnsupportedError& error) {
    EXPECT_EQ(error.field("name"), "G4");
    EXPECT_EQ(error.field("arithmetic"), "approx");
  }
}

// Gadgets with two primes, whatever is their default; nothing else.
TEST(TfheParamsVariants, SplitIsForGadgetsOfTwoPrimes) {
  for (const std::string& name : Params::preset_names()) {
    const Params params = Params::preset(name, true);
    if (params.spec().group != 0) {  // bundles are made in doubles
      EXPECT_THROW(params.with_arithmetic(Arithmetic::exact), UnsupportedError) << name;
      EXPECT_THROW(params.with_arithmetic(Arithmetic::split), UnsupportedError) << name;
      continue;
    }
    const bool possible = params.spec().path == NoisePath::gadget && params.primes().size() == 2;
    for (const u32 slots : {1u, 5u, 16u}) {
      const Params exact = params.with_arithmetic(Arithmetic::exact).with_slots(SlotCount(slots));
      try {
        const Params split = exact.with_arithmetic(Arithmetic::split);
        EXPECT_TRUE(possible) << name;
        EXPECT_EQ(split.arithmetic(), Arithmetic::split);
        EXPECT_EQ(split.slots().value, slots);
        EXPECT_NE(split.id(), exact.id());
        EXPECT_EQ(split.with_arithmetic(Arithmetic::exact), exact);
      } catch (const UnsupportedError& error) {
        EXPECT_FALSE(possible) << error.what();
        EXPECT_EQ(error.field("name"), name);
        EXPECT_EQ(error.field("arithmetic"), "split");
      }
    }
  }
  EXPECT_EQ(Params::preset("G4").arithmetic(), Arithmetic::split);
}

TEST(TfheParamsVariants, ArithmeticsHaveNames) {
  for (const auto arithmetic : {Arithmetic::exact, Arithmetic::approx, Arithmetic::split})
    EXPECT_EQ(arithmetic_from_string(to_string(arithmetic)), arithmetic);
  EXPECT_STREQ(to_string(Arithmetic::split), "split");
  for (const char* name : {"", "Split", "exact ", "fast"}) {
    try {
      arithmetic_from_string(name);
      ADD_FAILURE() << name;
    } catch (const ParameterError& error) {
      EXPECT_EQ(error.field("arithmetic"), name);
      EXPECT_EQ(error.field("expected"), "'exact', 'approx' or 'split'");
    }
  }
}

TEST(TfheParamsVariants, GroupsAreCheckedFieldByField) {
  const Spec spec = Params::preset("toy-lut4g4", true).spec();
  const std::vector<std::pair<const char*, std::function<void(Spec&)>>> changes{
      {"group is 7", [](Spec& s) { s.group = 7; }},
      {"group is 3", [](Spec& s) { s.group = 3, s.step = 3; }},  // 16 elements
      {"step is 3", [](Spec& s) { s.step = 3; }},
      {"step is 0", [](Spec& s) { s.step = 0; }},
      {"step is 2, switch_digits 10 and key_group 0", [](Spec& s) { s.group = 0; }},
      {"differences is true", [](Spec& s) { s.group = 0, s.differences = true; }},
      {"key_group is 7", [](Spec& s) { s.key_group = 7; }},
      {"keys' group = 1", [](Spec& s) { s.key_group = 1; }},
      {"secret is ternary", [](Spec& s) { s.secret = LweSecret::ternary; }},
      {"path is gadget", [](Spec& s) { s.path = NoisePath::gadget; }},
      {"switch_digits is 0", [](Spec& s) { s.switch_digits = 0; }},
      {"switch_digits is 11", [](Spec& s) { s.switch_digits = 11; }},
      {"log_lwe_modulus is 23", [](Spec& s) { s.log_lwe_modulus = 23; }},
      {"log_switch_modulus is 23", [](Spec& s) { s.log_switch_modulus = 23; }},
      {"arithmetic = exact", [](Spec& s) { s.arithmetic = Arithmetic::exact; }}};
  for (const auto& [text, change] : changes) {
    Spec changed = spec;
    change(changed);
    std::string all;
    for (const std::string& problem : Params::validate(changed, true)) all += problem + "\n";
    EXPECT_NE(all.find(text), std::string::npos) << text << " is not in: " << all;
  }
  std::set<std::string> ids{Params::from_spec(spec, true).id()};
  for (const auto& change : std::vector<std::function<void(Spec&)>>{
           [](Spec& s) { s.group = 2; }, [](Spec& s) { s.switch_digits = 9; },
           [](Spec& s) { s.differences = true; }}) {
    Spec changed = spec;
    change(changed);
    EXPECT_TRUE(ids.insert(Params::from_spec(changed, true).id()).second);
  }
}

TEST(TfheParamsVariants, IdCoversWhatChangesTheMeaning) {
  const Spec spec = Params::preset("bool128-classic").spec();
  const std::string id = Params::from_spec(spec).id();
  Spec other = spec;
  other.description = "", other.provenance = "";  // prose promises nothing
  EXPECT_EQ(Params::from_spec(other).id(), id);
  const std::vector<std::function<void(Spec&)>> changes{
      [](Spec& s) { s.lwe_dim = LweDim(657); }, [](Spec& s) { s.glwe_dim = GlweDim(4); },
      [](Spec& s) { s.poly_size = PolySize(1024); }, [](Spec& s) { s.log_lwe_modulus = 11; },
      [](Spec& s) { s.secret = LweSecret::binary, s.security_bits = 0; },
      [](Spec& s) { s.log_modulus = 16; }, [](Spec& s) { s.log_raised_modulus = 38; },
      [](Spec& s) { s.log_switch_modulus = 18, s.security_bits = 0; },
      [](Spec& s) { s.switch_base_log = DecompBaseLog(5); }, [](Spec& s) { s.plain_modulus = 8; },
      [](Spec& s) { s.padded = true; }, [](Spec& s) { s.arithmetic = Arithmetic::exact; },
      // what a set claims of itself
      [](Spec& s) { s.name = "renamed"; }, [](Spec& s) { s.name = ""; },
      [](Spec& s) { s.paper = true; }, [](Spec& s) { s.max_norm2 = 1; },
      [](Spec& s) { s.max_norm2 = 2.5; }, [](Spec& s) { s.security_bits = 128; },
      [](Spec& s) { s.security_bits = 0; }};
  std::set<std::string> ids{id};
  for (const auto& change : changes) {
    Spec changed = spec;
    change(changed);
    EXPECT_TRUE(ids.insert(Params::from_spec(changed, true).id()).second) << ids.size();
  }
}

}  // namespace
}  // namespace crenel::tfhe
