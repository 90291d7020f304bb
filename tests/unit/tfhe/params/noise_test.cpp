// The noise model against BOLT-FHE's printed table and against simulated integers.
#include "tfhe/params/noise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <vector>

#include "crenel/core/error.h"
#include "crenel/tfhe/params.h"
#include "support/random.h"
#include "tfhe/params/plan.h"

namespace crenel::tfhe {
namespace {

const double kSigma = std::sqrt(10.5);

struct Entry {
  const char* name;
  u32 slots;
  double sigma_total, bits;
};
// BOLT-FHE, table 7, as printed.
constexpr Entry kTable7[] = {
    {"M1", 1, 18.2935, 26.74},   {"M1", 2, 18.5107, 26.09},  {"M1", 4, 18.9375, 24.88},
    {"M1", 8, 19.7636, 22.76},   {"M1", 16, 21.3199, 19.42}, {"M2", 1, 18.9254, 102.66},
    {"M2", 2, 18.9255, 102.66},  {"M2", 4, 18.9256, 102.66}, {"M2", 8, 18.9258, 102.66},
    {"M2", 16, 18.9262, 102.65}, {"M3", 1, 30.8836, 37.93},  {"M3", 2, 30.8876, 37.92},
    {"M3", 4, 30.8957, 37.90},   {"M3", 8, 30.9119, 37.86},  {"M3", 16, 30.9442, 37.78},
    {"M4", 1, 65.6569, 33.45},   {"M4", 2, 65.6721, 33.44},  {"M4", 4, 65.7026, 33.40},
    {"M4", 16, 65.8848, 33.21},  {"M5", 1, 52.0111, 53.90},  {"M5", 2, 52.0136, 53.90},
    {"M5", 4, 52.0187, 53.89},   {"M5", 16, 52.0493, 53.82}, {"M6", 1, 26.8835, 50.37},
    {"M6", 2, 29.1650, 42.65},   {"M6", 4, 33.2619, 32.56},  {"M6", 16, 51.3894, 13.06},
};

TEST(TfheNoiseModel, ReproducesTable7) {
  for (const Entry& entry : kTable7) {
    // the table knows nothing of arithmetic
    const Params params = Params::preset(entry.name, true)
                              .with_arithmetic(Arithmetic::exact)
                              .with_slots(SlotCount(entry.slots));
    EXPECT_EQ(std::round(1e4 * paper_sigma_total(params)), std::round(1e4 * entry.sigma_total))
        << entry.name << " r = " << entry.slots;
    EXPECT_EQ(std::round(1e2 * paper_failure_bits(params)), std::round(1e2 * entry.bits))
        << entry.name << " r = " << entry.slots;
  }
}

TEST(TfheNoiseModel, PaperModelCoversRaisingOnly) {
  for (const char* name : {"G1", "STD128"}) {
    try {
      paper_sigma_total(Params::preset(name, true));
      FAIL();
    } catch (const UnsupportedError& error) {
      EXPECT_EQ(error.field("name"), name);
    }
    EXPECT_THROW(paper_failure_bits(Params::preset(name, true)), UnsupportedError);
  }
}

// Both models speak of the same noise; ours has fewer error rows (no row for a digit 0, centred
// binomial errors of variance 10.5 against 3.19^2) and rounds powers of two as integers do.
TEST(TfheNoiseModel, AgreesWithThePaperWhereBothApply) {
  for (const char* name : {"M1", "M2", "M3", "M4", "M5"}) {
    const Params params = Params::preset(name, true);
    const double paper = paper_sigma_total(params) / std::sqrt(2 * std::acos(-1.0));
    EXPECT_NEAR(fresh_std(params, 3.19) / paper, 1.0, 0.02) << name;
  }
}

// Mean square over `trials` draws, and six standard errors of it.
struct Estimate {
  double mean = 0, slack = 0;
};
Estimate mean_of(u32 trials, const std::function<double()>& draw) {
  double sum = 0, squares = 0;
  for (u32 i = 0; i < trials; ++i) {
    const double x = draw();
    sum += x;
    squares += x * x;
  }
  const double mean = sum / trials;
  return {mean, 6 * std::sqrt(std::max(0.0, squares / trials - mean * mean) / trials)};
}
constexpr u32 kTrials = 400000;

i64 centred_digit(i64 x, u32 base_log) {
  const i64 base = i64(1) << base_log;
  return ((x + base / 2) & (base - 1)) - base / 2;
}

// Simulated: decomposition as the backends do it; what multiplies errors, and what goes missing.
TEST(TfheNoiseModel, GadgetDigits) {
  test::Rng rng = test::test_rng();
  for (const char* name : {"toy-gadget", "toy-gadget2", "G1", "G5", "STD192", "STD256"}) {
    SCOPED_TRACE(name);
    const Params params = Params::preset(name, true);
    const device::TorusPlan plan = plan_of(params.with_arithmetic(Arithmetic::exact));
    const i64 modulus = static_cast<i64>(plan.modulus);
    const auto decompose = [&](double& used) {
      i64 x = static_cast<i64>(rng() % plan.modulus);
      if (x > modulus / 2) x -= modulus;
      const i64 dropped = centred_digit(x, plan.base_log);
      x = (x - dropped) >> plan.base_log;
      used = 0;
      for (u32 j = 0; j + 1 < plan.digits; ++j) {
        const i64 digit = centred_digit(x, plan.base_log);
        used += double(digit) * double(digit);
        x = (x - digit) >> plan.base_log;
      }
      used += double(x) * double(x);
      return double(dropped) * double(dropped);
    };
    double used = 0;
    const Estimate power = mean_of(kTrials, [&] { return decompose(used), used; });
    const Estimate lost = mean_of(kTrials, [&] { return decompose(used); });
    const double secret = 1 + plan.extracted_dim() * 2.0 / 3;
    // 2: mean square of X^e - 1; 2/3: the message of a ternary key is not zero
    const double missing = plan.lwe_dim * 2 * (2.0 / 3) * secret;
    const double errors = plan.lwe_dim * 4.0 * plan.polys() * plan.ring_dim() * 10.5;
    const double silent = noise_budget(plan, 0.0).blind_rotation;
    EXPECT_NEAR(silent / missing, lost.mean, lost.slack);
    EXPECT_NEAR((noise_budget(plan, kSigma).blind_rotation - silent) / errors, power.mean,
                power.slack + 2e-3 * power.mean);
  }
}

TEST(TfheNoiseModel, Roundings) {
  test::Rng rng = test::test_rng();
  const auto rounded = [&](u32 from, u32 to) {
    return mean_of(kTrials, [&] {
      const u64 x = rng() & ((u64(1) << from) - 1), half = u64(1) << (from - to - 1);
      const double error =
          double((x + half) >> (from - to)) - std::ldexp(double(x), int(to) - int(from));
      return error * error;
    });
  };
  // M6 goes down one bit only: a half is always rounded upwards
  const Params m6 = Params::preset("M6");
  const Estimate one_bit = rounded(17, 16);
  EXPECT_NEAR(noise_budget(m6, kSigma).switch_rounding / (1 + 2048 * 2.0 / 3), one_bit.mean,
              one_bit.slack);
  const Estimate rest = rounded(16, 10);
  EXPECT_NEAR(noise_budget(m6, kSigma).rest_rounding / (1 + 1024 * 2.0 / 3), rest.mean, rest.slack);
  // no rounding where the modulus does not change or grows
  EXPECT_EQ(noise_budget(Params::preset("bool128-classic"), kSigma).switch_rounding, 0.0);
  const NoiseBudget lut = noise_budget(Params::preset("lut4-128-classic"), kSigma);
  EXPECT_EQ(lut.switch_rounding, 0.0);
  EXPECT_EQ(lut.rest_rounding, 0.0);
  EXPECT_EQ(noise_budget(m6, kSigma).rotation_rounding, 0.0);
  const Estimate rotation = rounded(23, 13);
  EXPECT_NEAR(lut.rotation_rounding / (1 + 889 * 2.0 / 3), rotation.mean, rotation.slack);
}

TEST(TfheNoiseModel, KeySwitchRows) {
  test::Rng rng = test::test_rng();
  for (const char* name : {"M1", "M5", "bool128-classic", "lut4-128-classic", "G5"}) {
    const device::TorusPlan plan = plan_of(Params::preset(name, true));
    const Estimate rows = mean_of(kTrials, [&] {
      u64 x = rng() & ((u64(1) << plan.log_switch_modulus) - 1);
      double count = 0;
      for (u32 j = 0; j < plan.switch_digits; ++j, x >>= plan.switch_base_log)
        count += (x & ((u64(1) << plan.switch_base_log) - 1)) != 0;
      return count;
    });
    EXPECT_NEAR(noise_budget(plan, kSigma).key_switch / (plan.extracted_dim() * 10.5), rows.mean,
                rows.slack + 1e-9)
        << name;
  }
}

TEST(TfheNoiseModel, RaisingByHand) {
  // bool128-classic: per step (k+1) N Q^2/12 10.5 4 (Q/T)^2 + (1 + 2/3 kN) / 12
  const Params params = Params::preset("bool128-classic").with_arithmetic(Arithmetic::exact);
  const double scale = std::exp2(17) / (double(params.primes()[0]) * double(params.primes()[1]));
  const double key = 4 * 512 * std::exp2(34) / 12 * 10.5 * 4 * scale * scale;
  EXPECT_NEAR(noise_budget(params, kSigma).blind_rotation, 656 * (key + 1025.0 / 12), 1e-3);
  EXPECT_EQ(noise_budget(params, kSigma).transform, 0.0);
  // r = 5 adds four rows to the key term alone
  EXPECT_NEAR(noise_budget(params.with_slots(SlotCount(5)), kSigma).blind_rotation,
              656 * (2 * key + 1025.0 / 12), 1e-3);
  // a binary element has one key instead of two
  const double ternary =
      noise_budget(Params::preset("toy-raising", true), kSigma).blind_rotation / 16;
  const double binary =
      noise_budget(Params::preset("toy-raising-binary", true), kSigma).blind_rotation / 16;
  const double rounding = (1 + 192 * 2.0 / 3) / 12;
  EXPECT_NEAR((binary - rounding) / (ternary - rounding), 0.5, 1e-9);
}

TEST(TfheNoiseModel, TransformIsCountedUnlessExact) {
  for (const char* name : {"M2", "M3", "bool128-classic", "toy-lut4", "G4"}) {
    const Params params = Params::preset(name, true);
    ASSERT_NE(params.arithmetic(), Arithmetic::exact) << name;
    const NoiseBudget budget = noise_budget(params, kSigma);
    const Spec& spec = params.spec();
    const double norm = 1 + spec.glwe_dim.value * spec.poly_size.value * 2.0 / 3;
    const double std = device::transform_error_std(plan_of(params));
    EXPECT_NEAR(budget.transform / (spec.lwe_dim.value * std * std * norm), 1.0, 1e-12) << name;
    const NoiseBudget exact = noise_budget(params.with_arithmetic(Arithmetic::exact), kSigma);
    EXPECT_EQ(exact.transform, 0.0) << name;
    EXPECT_EQ(exact.blind_rotation, budget.blind_rotation) << name;
  }
  // what split is for: next to nothing of G4's noise is the transform's
  const NoiseBudget g4 = noise_budget(Params::preset("G4"), kSigma);
  EXPECT_LT(g4.transform, std::ldexp(g4.blind_rotation, -15));
}

// The cuts' variance by draws of uniform fractions, against the model's constants.
TEST(TfheNoiseModel, CutsAreWhatUniformExponentsCost) {
  auto rng = test::test_rng();
  for (const u32 group : {1u, 2u, 3u, 4u, 6u}) {
    const u32 keys = 1u << group;
    constexpr u32 kDraws = 4000;
    double sum = 0, squares = 0;
    for (u32 draw = 0; draw < kDraws; ++draw) {
      std::vector<double> f(keys, 0.0);
      for (u32 l = 0; l < group; ++l) {
        const double a = std::ldexp(double(rng() >> 11), -53);
        for (u32 set = 0; set < 1u << l; ++set) f[set | 1u << l] = std::fmod(f[set] + a, 1.0);
      }
      std::sort(f.begin(), f.end());
      double least = 1e9;
      for (u32 cut = 0; cut < keys; ++cut) {
        double mean = 0, square = 0;
        for (u32 i = 0; i < keys; ++i) {
          const double u = f[i] - (i > cut ? 1 : 0);
          mean += u / keys, square += u * u / keys;
        }
        least = std::min(least, square - mean * mean);
      }
      sum += least, squares += least * least;
    }
    const double mean = sum / kDraws, std = std::sqrt((squares / kDraws - mean * mean) / kDraws);
    Spec spec = Params::preset("toy-lut4g4", true).spec();
    spec.group = spec.step = group, spec.lwe_dim = LweDim(60 * group);
    const double model = noise_budget(plan_of(spec, SlotCount(1)), kSigma).rotation_rounding;
    EXPECT_NEAR(1.0 / 12 + 60 * mean, model, 60 * (7 * std + 1e-5)) << group;
  }
}

// Whatever step a server takes, it is within the norm, and coarser steps read with less noise.
TEST(TfheNoiseModel, StepsOfAGroupRestateTheFailureProbability) {
  for (const char* name : {"lut4-128", "bool128"}) {
    const Params set = Params::preset(name);
    const Params one = set.with_step(1), pairs = set.with_step(2), whole = set.with_step(4);
    EXPECT_LE(one.p_fail_log2(), -128) << name;
    EXPECT_LT(pairs.p_fail_log2(), one.p_fail_log2()) << name;
    EXPECT_LT(whole.p_fail_log2(), pairs.p_fail_log2()) << name;
    EXPECT_EQ(one.id(), whole.id()) << name;
    EXPECT_THROW(set.with_step(3), ParameterError);
    EXPECT_THROW(set.with_step(0), ParameterError);
  }
  EXPECT_THROW(Params::preset("bool128-classic").with_step(1), UnsupportedError);
  // keys of 2 and steps of 2 for the set by differences too
  const Params packed = Params::preset("bool128-packed").with_slots(SlotCount(5));
  const Params pairs = packed.with_key_group(2);
  EXPECT_LT(pairs.with_step(2).p_fail_log2(), pairs.with_step(1).p_fail_log2());
  EXPECT_THROW(packed.with_step(2), ParameterError);
}

// By differences: one key less, each times a monomial minus one, whose mean square is 2.
TEST(TfheNoiseModel, DifferencesDoubleAllKeysButOne) {
  Spec spec = Params::preset("toy-packed", true).spec();
  spec.log_raised_modulus = 2 * spec.log_modulus;  // keys err most
  for (const u32 group : {1u, 2u, 4u})
    for (const u32 slots : {1u, 5u}) {
      spec.group = spec.step = group, spec.differences = true;
      const auto by = [&](bool differences) {
        spec.differences = differences;
        const device::TorusPlan plan = plan_of(spec, SlotCount(slots));
        return noise_budget(plan, kSigma).blind_rotation - noise_budget(plan, 0).blind_rotation;
      };
      const double keys = std::exp2(group);
      EXPECT_NEAR(by(true) / by(false), 2 * (keys - 1) / keys, 1e-9) << group;
    }
}

TEST(TfheNoiseModel, FreshNoiseAddsUpAtTheRestModulus) {
  for (const std::string& name : Params::preset_names()) {
    const Params params = Params::preset(name, true);
    const NoiseBudget b = noise_budget(params, kSigma);
    const double q = std::exp2(params.spec().log_lwe_modulus);
    const double at_q = q / double(params.modulus());
    const double at_switch = q / std::exp2(params.spec().log_switch_modulus);
    // with groups the switch belongs to the reading
    const double switched = params.spec().group != 0 ? 0.0 : b.switch_rounding + b.key_switch;
    const double sum = at_q * at_q * (b.blind_rotation + b.transform) +
                       at_switch * at_switch * switched + b.rest_rounding;
    EXPECT_NEAR(fresh_std(params, kSigma) * fresh_std(params, kSigma) / sum, 1.0, 1e-12) << name;
  }
}

TEST(TfheNoiseModel, FailureBound) {
  const Params params = Params::preset("bool128-classic");
  // q / 8 against the sum of two: 1 - t^2 / (2 var) log2 e
  const double variance = 2 * std::pow(fresh_std(params, kSigma), 2);
  const double expected = 1 - 128.0 * 128.0 / (2 * variance) / std::log(2.0);
  EXPECT_NEAR(failure_log2(params, kSigma, 2, 4), expected, 1e-9);
  EXPECT_DOUBLE_EQ(params.p_fail_log2(), failure_log2(params, kSigma, 2, 4));
  // the bound lies above the Gaussian's tail, by a few bits
  const double gaussian = std::log2(std::erfc(128 / std::sqrt(2 * variance)));
  EXPECT_GT(expected, gaussian);
  EXPECT_LT(expected, gaussian + 7);
  // more noise, narrower messages, more slots: never better; never above probability 1
  double last = -1e9;
  for (const double norm2 : {1.0, 2.0, 3.0, 10.0, 1000.0}) {
    const double now = failure_log2(params, kSigma, norm2, 4);
    EXPECT_GE(now, last);
    EXPECT_LE(now, 0.0);
    last = now;
  }
  EXPECT_GT(failure_log2(params, kSigma, 2, 8), failure_log2(params, kSigma, 2, 4));
  EXPECT_GT(failure_log2(params, 2 * kSigma, 2, 4), failure_log2(params, kSigma, 2, 4));
  EXPECT_THROW(failure_log2(params, -1, 2, 4), ParameterError);
  EXPECT_THROW(failure_log2(params, kSigma, std::nan(""), 4), ParameterError);
  EXPECT_THROW(failure_log2(params, kSigma, 2, 0), ParameterError);
}

TEST(TfheNoiseModel, RotationRoundingIsNotScaledByTheFactors) {
  const Params params = Params::preset("lut4-128-classic");
  const NoiseBudget b = noise_budget(params, kSigma);
  const double to_rotation = 8192.0 / std::exp2(23);
  const double margin = 8192.0 / 64;
  for (const double norm2 : {1.0, 17.0, 30.0}) {
    const double variance =
        norm2 * std::pow(fresh_std(params, kSigma) * to_rotation, 2) + b.rotation_rounding;
    EXPECT_NEAR(failure_log2(params, kSigma, norm2, 32),
                1 - margin * margin / (2 * variance) / std::log(2.0), 1e-9);
  }
  // and the promise would also hold with the double-precision transform
  device::TorusPlan approx = plan_of(params);
  approx.arithmetic = device::Arithmetic::approx;
  EXPECT_LE(failure_log2(approx, kSigma, params.spec().max_norm2, 32), -128);
}

}  // namespace
}  // namespace crenel::tfhe
