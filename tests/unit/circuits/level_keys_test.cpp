// Circuits with keys for some levels only: transforms at every level served, and bootstraps, whose
// keys are asked for at the levels where they are used.
#include "ckks/key_sizes.h"
#include "crenel/circuits/bootstrapping.h"
#include "support/circuits.h"
#include "support/twins.h"

namespace crenel::circuits {
namespace {

using ckks::Ciphertext;
using ckks::EvaluationKeys;
using ckks::Evaluator;
using ckks::key_sizes;
using ckks::KeyRequest;
using ckks::Params;
using test::Twins;
using test::Values;

class CircuitLevelKeys : public test::SchemeTest {};
CRENEL_FAST_DEVICE_SUITE(CircuitLevelKeys);

TEST_P(CircuitLevelKeys, OfTransformsGiveTheBitsOfWholeKeys) {
  test::Rng rng = test::test_rng();
  Twins twins(test::world_params("s40"), GetParam(), rng());
  const Params& params = twins.context.params();
  const u64 offsets[] = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::vector<i64> steps{1, 2, 3, 4};
  KeyRequest request{steps, false, false};
  const Evaluator whole = twins.context.evaluator(twins.whole.evaluation_keys(request));
  const u32 limit = 3;
  for (i64 k : steps)
    request.rotation_levels[k] = limit + static_cast<u32>(k);  // forms of their own
  const EvaluationKeys keys = twins.cut.evaluation_keys(request);
  const Evaluator cut = twins.context.evaluator(keys);
  const Evaluator staged = twins.context.evaluator(keys.staged(keys.bytes() - 1));
  const auto m = test::random_diagonals(rng, params.slots(), offsets);
  for (u32 level = 1; level <= limit + 1; ++level)
    for (KeyMode mode : {KeyMode::hoisted, KeyMode::minimal}) {
      SCOPED_TRACE(cat("level ", level, mode == KeyMode::minimal ? ", minimal" : ", hoisted"));
      const LinearTransform t(twins.context, m, {.level = level, .baby_steps = 4, .keys = mode});
      const Ciphertext a = twins.whole.encrypt(test::random_values(rng, params.slots()), level);
      EXPECT_EQ(test::bits(t(cut, a)), test::bits(t(whole, a)));
      EXPECT_EQ(test::bits(t(staged, a)), test::bits(t(whole, a)));
    }
  const LinearTransform t(twins.context, m, {.level = limit + 2, .baby_steps = 4});
  const Ciphertext a = twins.whole.encrypt(Values(4, 0.5), limit + 2);
  const auto e = test::expect_error<KeyMissingError>([&] { t(cut, a); });
  EXPECT_EQ(e.field("operation"), "linear_transform");
  EXPECT_EQ(e.field("rotations"), "1") << "the others serve that level";
  EXPECT_EQ(e.field("level"), cat(limit + 2));
  EXPECT_EQ(e.field("max_level"), cat(limit + 1));
}

// What a bootstrap uses at which level, and no more: its keys are cut, its bits are not.
TEST_P(CircuitLevelKeys, OfABootstrapServeIt) {
  if (!exhaustive()) GTEST_SKIP() << "two bootstraps take long on ref";
  test::Rng rng = test::test_rng();
  for (auto order : {BootstrapOrder::coeff_to_slot_first, BootstrapOrder::slot_to_coeff_first}) {
    Twins twins(test::world_params("toy-boot40"), GetParam(), rng());
    const Params& params = twins.context.params();
    BootstrapOptions options;
    options.slots = 64;
    options.order = order;
    const KeyRequest cut = bootstrap_key_request(params, options);
    KeyRequest all = cut;
    all.rotation_levels.clear();
    all.conjugation_level.reset();
    all.relinearisation_level.reset();
    EXPECT_LT(key_sizes(params, cut).bytes, key_sizes(params, all).bytes);
    const Evaluator whole = twins.context.evaluator(twins.whole.evaluation_keys(all));
    const Evaluator limited = twins.context.evaluator(twins.cut.evaluation_keys(cut));
    const Bootstrapper boot(twins.context, options);
    const Ciphertext a =
        twins.whole.encrypt(test::random_values(rng, 64), boot.levels().input, 0.0, 64);
    EXPECT_EQ(test::bits(boot(limited, a)), test::bits(boot(whole, a)));
    // The program between bootstraps may use them at every normal level.
    const Ciphertext b = twins.whole.encrypt(Values(4, 0.5), params.normal_top_level());
    EXPECT_NO_THROW(limited.multiply(b, b));
    EXPECT_NO_THROW(limited.conjugate(b));
    for (i64 k : cut.rotations) EXPECT_NO_THROW(limited.rotate(b, k));
    // A level less, and it says so before any work.
    KeyRequest less = cut;
    const auto highest =
        std::max_element(less.rotation_levels.begin(), less.rotation_levels.end(),
                         [](const auto& x, const auto& y) { return x.second < y.second; });
    const i64 step = highest->first;
    highest->second -= 1;
    const Evaluator too_low = twins.context.evaluator(twins.cut.evaluation_keys(less));
    const auto e = test::expect_error<KeyMissingError>([&] { boot(too_low, a); });
    EXPECT_EQ(e.field("rotations"), cat(step)) << e.what();
    less = cut;
    *less.relinearisation_level = boot.levels().eval_mod - 1;
    const Evaluator lower = twins.context.evaluator(twins.cut.evaluation_keys(less));
    EXPECT_EQ(test::expect_error<KeyMissingError>([&] { boot(lower, a); }).field("key"),
              "relinearisation");
  }
}

// Keys for a bootstrap to a low level lack primes in the middle: of whole digits and, with boot30,
// inside of one.
TEST_P(CircuitLevelKeys, OfABootstrapToALowLevelServeIt) {
  if (!exhaustive()) GTEST_SKIP() << "bootstraps take long on ref";
  test::Rng rng = test::test_rng();
  for (const char* name : {"toy-boot40", "toy-boot30"}) {
    SCOPED_TRACE(name);
    Twins twins(test::world_params(name), GetParam(), rng());
    const Params& params = twins.context.params();
    BootstrapOptions options;
    options.slots = 16;
    options.target_level = 4;
    options.savings.aligned_keys = false;  // others of theirs would be drawn between those of both
    const KeyRequest cut = bootstrap_key_request(params, options);
    options.target_level.reset();
    const KeyRequest all = merge(bootstrap_key_request(params, options), cut);
    EXPECT_LT(key_sizes(params, cut).bytes, key_sizes(params, all).bytes);
    options.target_level = 4;
    const EvaluationKeys keys = twins.cut.evaluation_keys(cut);
    EXPECT_EQ(keys.bytes(), key_sizes(params, cut).bytes);
    const Evaluator whole = twins.context.evaluator(twins.whole.evaluation_keys(all));
    const Evaluator limited = twins.context.evaluator(keys);
    const Bootstrapper boot(twins.context, options);
    const u32 base = boot.levels().short_base.value();
    const Ciphertext a = twins.whole.encrypt(test::random_values(rng, 16), 0u, 0.0, 16);
    const auto expected = test::bits(boot(whole, a));
    EXPECT_EQ(test::bits(boot(limited, a)), expected);
    EXPECT_EQ(test::bits(boot(twins.context.evaluator(keys.staged(keys.bytes() - 1)), a)),
              expected);
    // Rotations of the program: up to the level whose primes are kept.
    const i64 step = cut.rotations.front();
    EXPECT_NO_THROW(limited.rotate(twins.whole.encrypt(Values(4, 0.5), base), step));
    const Ciphertext high = twins.whole.encrypt(Values(4, 0.5), base + 1);
    const auto e = test::expect_error<KeyMissingError>([&] { limited.rotate(high, step); });
    EXPECT_EQ(e.field("level"), cat(base + 1));
    EXPECT_EQ(e.field("max_level"), cat(base));
  }
}

}  // namespace
}  // namespace crenel::circuits
