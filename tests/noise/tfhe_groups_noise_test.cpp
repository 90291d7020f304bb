// Sets with groups: measured phase errors of results, and of readings, against the model. Intervals
// are six times the spread of the sample or more, with the keys' own weights beside it.
#include <cmath>

#include "support/tfhe_world.h"
#include "tfhe/evaluator_state.h"
#include "tfhe/params/plan.h"

namespace crenel::tfhe {
namespace {

using test::kErrorStd;
using test::Messages;

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments(const std::vector<double>& x) {
  Moments m;
  for (const double v : x) m.mean += v / double(x.size());
  for (const double v : x) m.variance += (v - m.mean) * (v - m.mean) / double(x.size() - 1);
  return m;
}

// The toy with other sizes; its T is just above Q^2 where `narrow`, so that keys err most.
Spec spec_of(u32 group, u32 step, u32 lwe_dim, bool narrow, bool differences = false) {
  Spec spec = Params::preset("toy-lut4g4", true).spec();
  spec.name = "test-groups";
  spec.lwe_dim = LweDim(lwe_dim);
  spec.group = group, spec.step = step, spec.differences = differences;
  if (narrow) {
    spec.log_modulus = spec.log_lwe_modulus = 18, spec.log_raised_modulus = 36;
    spec.log_switch_modulus = 17, spec.switch_digits = 8;
  }
  return spec;
}

class TfheGroupsNoise : public test::DeviceTest {};

TEST_P(TfheGroupsNoise, ResultsErrAsTheModelSays) {
  auto rng = test::test_rng();
  constexpr int kKeys = 4;
  constexpr u64 kCount = 400;
  for (const bool narrow : {false, true})
    for (const auto& [group, step, slots, differences] : {std::tuple{1u, 1u, 1u, false},
                                                          {2u, 2u, 1u, false},
                                                          {3u, 3u, 1u, false},
                                                          {4u, 4u, 1u, false},
                                                          {4u, 2u, 1u, false},
                                                          {4u, 1u, 1u, false},
                                                          {6u, 3u, 1u, false},
                                                          {1u, 1u, 5u, true},
                                                          {2u, 2u, 4u, true},
                                                          {2u, 1u, 2u, true},
                                                          {2u, 2u, 3u, false}}) {
      const Params params = Params::from_spec(spec_of(group, step, 24, narrow, differences), true)
                                .with_slots(SlotCount(slots));
      double measured = 0, mean = 0;
      for (int key = 0; key < kKeys; ++key) {
        test::LookedUp c = test::looked_up(params, GetParam(), kCount, rng);
        ASSERT_EQ(c.client.decrypt(c.result), c.expected);
        std::vector<double> errors;
        for (const i64 e : c.client.phase_errors(c.result, c.expected)) errors.push_back(double(e));
        const Moments m = moments(errors);
        measured += m.variance / kKeys, mean = std::max(mean, m.mean * m.mean / m.variance);
      }
      const double std = fresh_std(params, kErrorStd);
      const double ratio = measured / (std * std);
      std::printf("g = %u by %u, r = %u, Q = 2^%u: std %.3f model %.3f ratio of variances %.3f\n",
                  group, step, slots, params.spec().log_modulus, std::sqrt(measured), std, ratio);
      // six times sqrt(2 / 1600) = 0.035 of the sample and sqrt(1 / (2 * 1024)) = 0.022 of the
      // keys' ring secrets; 0.12 that the model says too much of a first step, whose masks are 0
      EXPECT_GT(ratio, 0.64) << "repeat with CRENEL_SEED=" << test::run_seed();
      EXPECT_LT(ratio, 1.3) << "repeat with CRENEL_SEED=" << test::run_seed();
      EXPECT_LT(mean, 40.0 / kCount);
    }
}

// The table f -> f Q / 2N gives the phase back that a rotation read. Messages at a quarter turn
// stay far from its ends.
TEST_P(TfheGroupsNoise, ReadingsErrAsTheModelSays) {
  constexpr int kKeys = 6;
  constexpr u64 kCount = 400;
  for (const bool coarse : {false, true})
    for (const auto& [group, step] :
         {std::pair{1u, 1u}, {2u, 2u}, {3u, 3u}, {4u, 4u}, {4u, 2u}, {6u, 6u}}) {
      Spec spec = spec_of(group, step, 48, false);
      if (coarse) spec.log_switch_modulus = 13, spec.switch_digits = 6;  // the switch errs most
      const Params params = Params::from_spec(spec, true);
      const double two_n = 2.0 * spec.poly_size.value, q = std::exp2(spec.log_lwe_modulus);
      const NoiseBudget budget = noise_budget(params, kErrorStd);
      const double to_steps = two_n / std::exp2(spec.log_switch_modulus);
      const double switching = budget.key_switch * to_steps * to_steps;
      double measured = 0;
      for (int key = 0; key < kKeys; ++key) {
        const Context context(params, GetParam());
        Client client = context.keygen();
        const Evaluator ev = context.evaluator(client.evaluation_keys(), {0.0});
        const Evaluator::State& s = ev.state();
        const Messages quarter(kCount, 8);
        const Ciphertext x = client.encrypt(quarter);
        const auto ramp = s.function(ContentKey("ramp of a test"), [&] {
          TestPolynomial v{std::vector<u64>(spec.poly_size.value), 0};
          for (u64 f = 0; f < v.coefficients.size(); ++f)
            v.coefficients[f] = f * (s.plan().modulus / u64(two_n));
          return v;
        });
        const Ciphertext c = s.wrap(s.bootstrapped(x.data().payload.as<const u32>(), kCount, ramp),
                                    kCount, 32, s.log_q(), s.bootstrap_noise(kCount, s.log_q()));
        std::vector<double> errors;
        for (const i64 e : client.phase_errors(c, quarter)) errors.push_back(double(e) * two_n / q);
        const Moments m = moments(errors);
        measured += m.variance / kKeys;
        // digits are -1/2 on average, so that a key's rows shift all readings: 1/6 of the switch
        EXPECT_LT(std::abs(m.mean), 7 * std::sqrt(switching / 6 + m.variance / kCount));
      }
      const double model =
          reading_variance(plan_of(params), spec.log_lwe_modulus) * two_n * two_n / (q * q);
      const double about = model - switching / 6, ratio = measured / about;
      std::printf("g = %u by %u, Q_KS = 2^%u: reading %.3f model %.3f ratio %.3f\n", group, step,
                  spec.log_switch_modulus, measured, about, ratio);
      // six times sqrt(2 / 2400) = 0.029, and the keys' secrets
      EXPECT_GT(ratio, 0.75) << "repeat with CRENEL_SEED=" << test::run_seed();
      EXPECT_LT(ratio, 1.25) << "repeat with CRENEL_SEED=" << test::run_seed();
    }
}

// Look-ups at a margin of less than two deviations, where failures are frequent: as many as a
// Gaussian of the judged variance gives, and no more than the bound that p_fail_log2 states.
TEST_P(TfheGroupsNoise, TablesFailAsOftenAsStated) {
  auto rng = test::test_rng();
  constexpr int kKeys = 8;
  constexpr u64 kCount = 250;
  struct Case {
    u32 lwe_dim, step, plain_modulus;
    bool coarse;  ///< the switch errs most; otherwise the cuts
  };
  for (const Case& c :
       {Case{48, 2, 16, true}, {48, 4, 16, true}, {480, 2, 64, false}, {480, 4, 64, false}}) {
    Spec spec = spec_of(4, c.step, c.lwe_dim, false);
    spec.plain_modulus = c.plain_modulus;
    if (c.coarse) spec.log_switch_modulus = 13, spec.switch_digits = 6;
    const Params params = Params::from_spec(spec, true);
    const u32 messages = c.plain_modulus / 2;
    double failures = 0, expected = 0, bound = 0;
    for (int key = 0; key < kKeys; ++key) {
      const Context context(params, GetParam());
      Client client = context.keygen();
      const Evaluator ev = context.evaluator(client.evaluation_keys(), {0.0});
      Messages x = test::random_messages(rng, kCount, messages - 2);
      for (u64& m : x) m += 1;  // neighbours on both sides
      Lut identity;
      for (u64 m = 0; m < messages; ++m) identity.table.push_back(m);
      const Ciphertext in = client.encrypt(x);
      const Messages found = client.decrypt(ev.lut(in, identity));
      const double p = ev.state().failure(in.data().noise, spec.log_lwe_modulus,
                                          table_margin(ev.state().plan(), c.plain_modulus));
      for (u64 i = 0; i < kCount; ++i) failures += found[i] != x[i];
      expected += kCount * std::erfc(std::sqrt(std::log(2.0) * (1 - p)));
      bound += kCount * std::exp2(p);
    }
    std::printf("n = %u by %u, p = %u: %.0f failures, Gaussian tails %.0f, bound %.0f\n", c.lwe_dim,
                c.step, c.plain_modulus, failures, expected, bound);
    // keys of the coarse switch shift all their readings by up to half a deviation; phases are
    // integers, so that a margin of 4 is 3.5 or 4.5
    EXPECT_GT(failures, expected / 2) << "repeat with CRENEL_SEED=" << test::run_seed();
    EXPECT_LT(failures, expected * 2) << "repeat with CRENEL_SEED=" << test::run_seed();
    EXPECT_LT(failures, bound);
  }
}

CRENEL_CANDIDATE_SUITE(TfheGroupsNoise);

}  // namespace
}  // namespace crenel::tfhe
