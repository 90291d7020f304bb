// Circuits with keys for aligned levels: transforms with them and with keys of both kinds, and what
// a bootstrap asks for.
#include "circuits/bootstrapping/defaults.h"
#include "circuits/bootstrapping/state.h"
#include "ckks/key_sizes.h"
#include "ckks/params/chain.h"
#include "crenel/circuits/bootstrapping.h"
#include "crenel/device/optimisations.h"
#include "support/circuits.h"
#include "support/twins.h"

namespace crenel::circuits {
namespace {

using ckks::Ciphertext;
using ckks::Evaluator;
using ckks::KeyRequest;
using ckks::Params;
using test::Twins;

class CircuitAlignedKeys : public test::SchemeTest {
 protected:
  static constexpr u32 kLevel = 7;  // of toy-boot40, whose levels are those of boot40

  // Rotations by these steps, of the ordinary kind and aligned.
  static KeyRequest request(const std::vector<i64>& plain, const std::vector<i64>& aligned) {
    KeyRequest r{plain, false, false};
    for (i64 k : aligned) r.aligned_rotations[k] = kLevel;
    return r;
  }
};
CRENEL_FAST_DEVICE_SUITE(CircuitAlignedKeys);

// Baby steps 1 to 3, giant steps 4 and 8.
TEST_P(CircuitAlignedKeys, TransformsTakeThem) {
  test::Rng rng = test::test_rng();
  const u64 seed = rng();
  const Params& params = test::world_params("toy-boot40");
  Twins twins(params, GetParam(), seed);
  const u64 offsets[] = {0, 1, 2, 3, 4, 6, 8, 11};
  const std::vector<i64> all{1, 2, 3, 4, 8};
  const auto m = test::random_diagonals(rng, params.slots(), offsets);
  const auto values = test::random_values(rng, params.slots());
  for (KeyMode mode : {KeyMode::hoisted, KeyMode::minimal}) {
    const auto options = LinearTransformOptions{.level = kLevel, .baby_steps = 4, .keys = mode};
    const auto of = [&](Twins& on, const KeyRequest& keys, const Ciphertext& a) {
      const LinearTransform t(on.context, m, options);
      return t(on.context.evaluator(on.whole.evaluation_keys(keys)), a);
    };
    const Ciphertext a = twins.whole.encrypt(values, kLevel);
    const auto plain = twins.whole.decrypt(of(twins, request(all, {}), a));
    for (const KeyRequest& keys : {request({}, all), request({1, 4}, {2, 3, 8}),
                                   request({2, 3}, {1, 4, 8}), request(all, {1, 8})})
      EXPECT_LT(test::max_error(twins.whole.decrypt(of(twins, keys, a)), plain), 0x1p-18);
    if (GetParam() == "ref") continue;
    // The same keys of both kinds give the bits of ref.
    Twins own(params, GetParam(), seed), ref(params, "ref", seed);
    const KeyRequest mixed = request({1, 4}, {2, 3, 8});
    const auto bits = [&](Twins& on) {
      return test::bits(of(on, mixed, on.whole.encrypt(values, kLevel)));
    };
    EXPECT_EQ(bits(own), bits(ref));
  }
}

// Where the ordinary keys are all there and some aligned ones, the ordinary ones share digits; the
// same bits where digits are not shared.
TEST_P(CircuitAlignedKeys, TransformsTakeTheSameOnesWithoutHoisting) {
  test::Rng rng = test::test_rng();
  Twins twins(test::world_params("toy-boot40"), GetParam(), rng());
  const Params& params = twins.context.params();
  const u64 offsets[] = {0, 1, 2, 3, 5};
  const LinearTransform t(twins.context, test::random_diagonals(rng, params.slots(), offsets),
                          {.level = kLevel, .baby_steps = 4});
  const Ciphertext a = twins.whole.encrypt(test::random_values(rng, params.slots()), kLevel);
  for (const KeyRequest& keys : {request({1, 2, 3, 4}, {2}), request({1, 4}, {2, 3}),
                                 request({4}, {1, 2, 3}), request({1, 2, 3}, {1, 2, 3, 4})}) {
    const Evaluator ev = twins.context.evaluator(twins.whole.evaluation_keys(keys));
    device::set_optimisations(twins.context.device(), {});
    const auto hoisted = test::bits(t(ev, a));
    device::set_optimisations(twins.context.device(),
                              device::Optimisations().without(device::Optimisation::hoisting));
    const auto apart = test::bits(t(ev, a));
    device::set_optimisations(twins.context.device(), {});
    EXPECT_EQ(apart, hoisted);
  }
}

// Every rotation of a bootstrap has a key at its level: an ordinary one, or an aligned one.
TEST(AlignedBootstrapKeys, ServeEveryRotation) {
  u32 aligned = 0;
  const auto check = [&](const Params& params, const BootstrapOptions& options) {
    const KeyRequest request = bootstrap_key_request(params, options);
    const BootstrapPlan plan = plan_bootstrap(params, with_any_ratio(options));
    const rlwe::Chain chain = ckks::chain_of(params);
    for (const RotationNeed& need : BootstrapMatrices(plan).rotations(params, plan))
      for (i64 k : need.turned ? std::vector<i64>() : need.steps) {
        if (k == 0 || rlwe::serves(request.rotation_levels.at(k), need.level)) continue;
        EXPECT_TRUE(chain.aligned(need.level)) << k << " at level " << need.level;
        EXPECT_GE(request.aligned_rotations.at(k), need.level) << k;
        ++aligned;
      }
    // And at every normal level, where nothing shortens the bootstrap.
    for (const auto& [k, level] : request.rotation_levels) {
      const u32 top = params.normal_top_level();
      if (plan.levels.short_base || rlwe::serves(level, top)) continue;
      EXPECT_TRUE(rlwe::serves(level, top - 1) && request.aligned_rotations.contains(k)) << k;
    }
  };
  for (const char* name : {"toy-boot40", "toy-boot45", "toy-boot50"})
    for (auto order : {BootstrapOrder::coeff_to_slot_first, BootstrapOrder::slot_to_coeff_first})
      for (u32 pack : {1u, 4u})
        for (std::optional<u32> target : {std::optional<u32>(), std::optional<u32>(6)}) {
          SCOPED_TRACE(cat(name, " order ", int(order), " pack ", pack, " ", target.value_or(99)));
          BootstrapOptions options;
          options.pack = pack, options.order = order;
          options.target_level = target;
          check(Params::preset(name, true), options);
        }
  EXPECT_GT(aligned, 0u);
}

// One bootstrapper is of one kind of options, for whom it is asked about them.
TEST_P(CircuitAlignedKeys, AreAmongTheOptionsOfABootstrapper) {
  const ckks::Context context(test::world_params("toy-boot40"), GetParam());
  BootstrapOptions with, without;
  with.slots = without.slots = 8;
  without.savings.aligned_keys = false;
  const Bootstrapper first(context, with), second(context, without);
  EXPECT_TRUE(first.options().savings.aligned_keys);
  EXPECT_FALSE(second.options().savings.aligned_keys);
}

// A bootstrap asks for keys of its aligned levels, works with them and with those of before.
TEST_P(CircuitAlignedKeys, OfABootstrap) {
  if (!exhaustive()) GTEST_SKIP() << "two bootstraps take long on ref";
  test::Rng rng = test::test_rng();
  Twins twins(test::world_params("toy-boot40"), GetParam(), rng());
  const Params& params = twins.context.params();
  BootstrapOptions options;
  options.slots = 64;
  const KeyRequest with = bootstrap_key_request(params, options);
  EXPECT_EQ(with.aligned_relinearisation, params.highest_aligned(params.max_level()));
  EXPECT_FALSE(with.aligned_rotations.empty());
  BootstrapOptions before = options;
  before.savings.aligned_keys = false;
  const KeyRequest without = bootstrap_key_request(params, before);
  EXPECT_TRUE(without.aligned_rotations.empty() && !without.aligned_relinearisation);
  const Bootstrapper boot(twins.context, options);
  const auto values = test::random_values(rng, 64);
  const Ciphertext a = twins.whole.encrypt(values, boot.levels().input, 0.0, 64);
  for (const KeyRequest& r : {with, without}) {
    const Evaluator ev = twins.context.evaluator(twins.whole.evaluation_keys(r));
    EXPECT_LT(test::max_error(twins.whole.decrypt(boot(ev, a)), values),
              2.0 * boot.describe().worst_error);
  }
}

}  // namespace
}  // namespace crenel::circuits
