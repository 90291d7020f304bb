// Failures where they can be counted: the sets for use, their noise as it is, and messages so
// close together that one look-up in three or so is wrong. What p_fail is stated from, the variance
// of what a rotation reads, then shows in a count.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "crenel/core/error.h"
#include "crenel/tfhe/evaluator.h"
#include "support/random.h"
#include "tfhe/params/noise.h"
#include "tfhe/params/plan.h"

namespace crenel::tfhe {
namespace {

constexpr u64 kCount = 700;

// The set with padded messages modulo p: nothing else is changed, so that keys, noise and the
// rotation are the set's own.
Params crowded(const char* set, u32 p, u32 step) {
  Spec spec = Params::preset(set).spec();
  spec.name = "crowded", spec.security_bits = 0;
  spec.plain_modulus = p, spec.padded = true, spec.max_norm2 = 1, spec.step = step;
  return Params::from_spec(spec, true);
}

// Gaussian probability that an error of this variance leaves its box, [-margin, margin) for integer
// errors.
double outside(double variance, double margin) {
  const double scale = std::sqrt(2 * variance);
  return (std::erfc((margin - 0.5) / scale) + std::erfc((margin + 0.5) / scale)) / 2;
}

// Variances at 2N.
struct Variance {
  double all = 0;
  /// What the mean error of one key's switch has of it: digits in [-B/2, B/2) have a mean of -1/2,
  /// so that every key shifts all phases by something of this variance.
  double shift = 0;
};

// Of what reading adds, and of a bootstrap's result times `factor`.
Variance read_variance(const Params& params, double factor, bool stored) {
  const device::TorusPlan plan = plan_of(params);
  const NoiseBudget budget = noise_budget(plan, std::sqrt(kErrorVariance));
  const auto at_steps = [&](u32 log_modulus, double variance) {
    return std::exp2(2 * (double(plan.log_n) + 1 - log_modulus)) * variance;
  };
  const u32 log_q = plan.log_lwe_modulus;
  const double reading =
      stored ? stored_variance(plan, budget) : reading_variance(plan, budget, log_q);
  const double base = std::exp2(plan.switch_base_log);
  return {at_steps(log_q, factor * factor * fresh_variance(plan, budget) + reading),
          at_steps(plan.log_switch_modulus, budget.key_switch) * 3 / (base * base + 2)};
}

// The count within what the model says, for whatever key was drawn: with no shift or one of five
// deviations, a tenth of the rest for the secret's share of the cuts, and five deviations of the
// count.
void expect_failures(const std::string& what, u64 failures, const Variance& variance,
                     double margin) {
  const double p = outside(variance.all, margin), rest = variance.all - variance.shift;
  std::printf("%-24s %4llu of %llu wrong, model %6.1f\n", what.c_str(),
              static_cast<unsigned long long>(failures), static_cast<unsigned long long>(kCount),
              p * kCount);
  const double low = outside(0.9 * rest, margin);
  const double high = outside(1.1 * rest + 25 * variance.shift, margin);
  const auto slack = [](double q) { return 5 * std::sqrt(kCount * q * (1 - q)) + 1; };
  EXPECT_GT(double(failures), kCount * low - slack(low)) << what;
  EXPECT_LT(double(failures), kCount * high + slack(high)) << what;
  // half of the variance would be seen
  EXPECT_GT(kCount * low - slack(low), kCount * outside(variance.all / 2, margin)) << what;
}

u64 wrong(const std::vector<u64>& found, const std::vector<u64>& expected) {
  u64 count = 0;
  for (std::size_t i = 0; i < found.size(); ++i) count += found[i] != expected[i];
  return count;
}

void count_failures(const char* set, u32 p, u32 step) {
  test::Rng rng = test::test_rng();
  const Params params = crowded(set, p, step);
  const Context context(params, "cpu");
  Client client = context.keygen();
  const Evaluator ev = context.evaluator(client.evaluation_keys(), {.max_p_fail_log2 = 0});
  const double margin = 2.0 * params.spec().poly_size.value / (2.0 * p);
  // away from the ends, so that what is read wrong is a neighbour and no negated one
  std::vector<u64> messages(kCount), thirds(kCount), expected(kCount);
  for (u64 i = 0; i < kCount; ++i) {
    messages[i] = 2 + rng() % (p / 2 - 4);
    thirds[i] = 1 + rng() % (p / 6 - 4);
    expected[i] = 3 * thirds[i];
  }
  const Ciphertext fresh = client.encrypt(messages);
  const Ciphertext once = ev.refresh(fresh);
  expect_failures(cat(set, ", fresh"), wrong(client.decrypt(once), messages),
                  read_variance(params, 0, false), margin);
  // a result times 3, whose noise counts nine times; wrong once it may be wrong by three
  const Ciphertext result = ev.refresh(client.encrypt(thirds));
  const std::vector<u64> held = client.decrypt(result);
  std::vector<u64> tripled(kCount);
  for (u64 i = 0; i < kCount; ++i) tripled[i] = 3 * held[i];
  const Term term{&result, 3};
  const Ciphertext again = ev.refresh(ev.linear({&term, 1}));
  expect_failures(cat(set, ", three times"), wrong(client.decrypt(again), tripled),
                  read_variance(params, 3, false), margin);
  const Ciphertext stored = ev.decompress(ev.compress(fresh));
  expect_failures(cat(set, ", stored"), wrong(client.decrypt(stored), messages),
                  read_variance(params, 0, true), margin);
}

// p = 512 leaves 4 of the 64 steps that the set's 32 has.
TEST(TfheFailures, OfTablesInSteps) { count_failures("lut4-128", 512, 2); }
// p = 64 leaves 8 of a gate's 128 steps.
TEST(TfheFailures, OfGatesInSteps) { count_failures("bool128", 64, 4); }

}  // namespace
}  // namespace crenel::tfhe
