// The gate: what is below the norm needs allow_insecure, whatever a set or a file says of itself.
#include "tfhe/params/security.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "crenel/core/error.h"
#include "support/random.h"
#include "tfhe/params/validate.h"

namespace crenel::tfhe {
namespace {

Spec spec_of(const std::string& name) { return Params::preset(name, true).spec(); }

void expect_flag_needed(const Spec& spec) {
  try {
    Params::from_spec(spec);
    ADD_FAILURE() << spec.name << " was taken";
  } catch (const ParameterError& error) {
    EXPECT_NE(std::string(error.what()).find("allow_insecure"), std::string::npos) << error.what();
  }
  const Params taken = Params::from_spec(spec, true);
  EXPECT_TRUE(taken.below_norm());
  EXPECT_FALSE(taken.warning().empty());
}

TEST(TfheSecurityGate, ToysNeedTheFlag) {
  u32 toys = 0;
  for (const std::string& name : Params::preset_names()) {
    if (!name.starts_with("toy-")) {
      EXPECT_NO_THROW(Params::preset(name)) << name;
      continue;
    }
    ++toys;
    try {
      Params::preset(name);
      ADD_FAILURE() << name;
    } catch (const ParameterError& error) {
      EXPECT_EQ(error.field("name"), name);
    }
    EXPECT_FALSE(Params::preset(name, true).warning().empty());
    EXPECT_EQ(Params::preset(name, true).security_bits(), 0.0);
    expect_flag_needed(spec_of(name));
  }
  EXPECT_EQ(toys, 7u);
}

// By their numbers: a published set under any name and claim is what it is, and a changed one
// is not.
TEST(TfheSecurityGate, PublishedSetsAreKnownByTheirNumbers) {
  for (const char* name : {"M1", "M3", "G1", "STD128_3", "STD256"}) {
    Spec spec = spec_of(name);
    spec.name = "bool128-classic", spec.paper = false, spec.description = "safe";
    const Params renamed = Params::from_spec(spec);
    EXPECT_FALSE(renamed.warning().empty()) << name;
    EXPECT_EQ(renamed.security_bits(), Params::preset(name).security_bits());
    EXPECT_EQ(renamed.p_fail_log2(), Params::preset(name).p_fail_log2());
    EXPECT_FALSE(renamed == Params::preset(name));
    EXPECT_FALSE(renamed == Params::preset("bool128-classic"));
    spec.name = name, spec.paper = true;
    spec.lwe_dim = LweDim(spec.lwe_dim.value - 1), spec.security_bits = 0;
    expect_flag_needed(spec);
  }
}

TEST(TfheSecurityGate, NoClaimRaisesWhatIsKnown) {
  test::Rng rng = test::test_rng();
  u32 taken = 0;
  for (int round = 0; round < 200; ++round) {
    Spec spec = spec_of("bool128-classic");
    spec.lwe_dim = LweDim(600 + static_cast<u32>(rng() % 120));
    const double estimate = security_estimate(spec);
    spec.security_bits = estimate - 4 + double(rng() % 1000) / 100;
    spec.max_norm2 = 1 + double(rng() % 3);
    try {
      const Params params = Params::from_spec(spec, true);
      ++taken;
      const bool own = own_set(spec) != nullptr;
      EXPECT_EQ(
          params.security_bits(),
          std::min(spec.security_bits, own ? spec_of("bool128-classic").security_bits : estimate));
      EXPECT_EQ(params.below_norm(), params.security_bits() < 128 || params.p_fail_log2() > -128);
      if (params.below_norm() && !own) expect_flag_needed(spec);
    } catch (const ParameterError&) {  // more than the fit can err by is no claim but a mistake
      EXPECT_GT(spec.security_bits, estimate + kSecurityTolerance);
    }
  }
  EXPECT_GT(taken, 50u);
}

// A gate adds two inputs whatever the set says: the review's set of 2^-66 that stated 2^-133.
TEST(TfheSecurityGate, PFailIsThatOfRealGates) {
  for (const std::string& name : Params::preset_names()) {
    Spec spec = spec_of(name);
    if (spec.max_norm2 != 2 || spec.plain_modulus != 4) continue;
    const Params honest = Params::from_spec(spec, true);
    spec.max_norm2 = 1;
    const Params boast = Params::from_spec(spec, true);
    EXPECT_EQ(boast.p_fail_log2(), honest.p_fail_log2()) << name;
    EXPECT_FALSE(boast == honest) << name;
    EXPECT_GT(honest.p_fail_log2(), failure_log2(honest, std::sqrt(10.5), 1, 4)) << name;
    spec.max_norm2 = 4;
    EXPECT_GT(Params::from_spec(spec, true).p_fail_log2(), honest.p_fail_log2()) << name;
  }
  Spec weak = spec_of("bool128-classic");  // 2^-66 for gates
  weak.lwe_dim = LweDim(700), weak.log_switch_modulus = 15, weak.security_bits = 0;
  weak.switch_base_log = DecompBaseLog(5), weak.max_norm2 = 1;
  const Params taken = Params::from_spec(weak, true);
  EXPECT_GT(taken.p_fail_log2(), -100);
  EXPECT_GE(taken.security_bits(), 128);
  expect_flag_needed(weak);
}

// Fresh ciphertexts of a small q have more noise than bootstrapped ones.
TEST(TfheSecurityGate, PFailCoversFreshInputs) {
  const Params toy = Params::preset("toy-raising", true);  // q = 2^7, margin 16
  const double fresh = 1 - 16.0 * 16 / (2 * 2 * 10.5) / std::log(2.0);
  EXPECT_NEAR(toy.p_fail_log2(), fresh, 1e-9);
  EXPECT_LT(failure_log2(toy, std::sqrt(10.5), 2, 4), -90);
  const Params real = Params::preset("bool128-classic");
  EXPECT_DOUBLE_EQ(real.p_fail_log2(), failure_log2(real, std::sqrt(10.5), 2, 4));
}

// The numbers of a set within the norm and a claim, or slots, that are not: an evaluator takes the
// failure probability that a set states for its limit, so a file that states 2^0 would turn it off.
TEST(TfheSecurityGate, PublishedNumbersExcuseWhatWasPublishedOnly) {
  for (const char* name : {"bool128-classic", "lut4-128-classic", "STD128", "STD128Q"}) {
    Spec sums = spec_of(name);
    sums.max_norm2 = 1 << 20;
    EXPECT_EQ(Params::from_spec(sums, true).p_fail_log2(), 0) << name;
    expect_flag_needed(sums);
  }
  Spec claim = spec_of("lut4-128-classic");
  claim.security_bits = 1;
  expect_flag_needed(claim);
  for (const auto& [name, slots] :
       {std::pair{"STD128Q", 16u}, {"STD128Q_3", 16u}, {"lut4-128-classic", 8u}}) {
    EXPECT_THROW(Params::preset(name).with_slots(SlotCount(slots)), ParameterError) << name;
    EXPECT_TRUE(Params::preset(name, true).with_slots(SlotCount(slots)).below_norm()) << name;
  }
  EXPECT_TRUE(Params::preset("STD128").with_slots(SlotCount(2)).below_norm());  // as it stands
}

// What with_slots and with_arithmetic add may cross the norm: as refused as the set itself
// would be.
TEST(TfheSecurityGate, VariantsThatCrossTheNormNeedTheFlag) {
  Spec spec = spec_of("bool128-classic");
  spec.switch_base_log = DecompBaseLog(3);
  const Params narrow = Params::from_spec(spec);
  EXPECT_LE(narrow.p_fail_log2(), -128);
  try {
    narrow.with_slots(SlotCount(16));
    ADD_FAILURE() << "2^" << Params::from_spec(spec, true).with_slots(SlotCount(16)).p_fail_log2();
  } catch (const ParameterError& error) {
    EXPECT_EQ(error.field("slots"), "16");
  }
  const Params allowed = Params::from_spec(spec, true).with_slots(SlotCount(16));
  EXPECT_GT(allowed.p_fail_log2(), -128);
  EXPECT_FALSE(allowed.warning().empty());
  EXPECT_NO_THROW(narrow.with_slots(SlotCount(2)));

  Spec tables = spec_of("lut4-128-classic");
  tables.lwe_dim = LweDim(890), tables.security_bits = 0, tables.arithmetic = Arithmetic::exact;
  tables.max_norm2 = 36;
  const Params exact = Params::from_spec(tables);
  EXPECT_THROW(exact.with_arithmetic(Arithmetic::approx), ParameterError);
  EXPECT_GT(Params::from_spec(tables, true).with_arithmetic(Arithmetic::approx).p_fail_log2(),
            -128);
}

}  // namespace
}  // namespace crenel::tfhe
