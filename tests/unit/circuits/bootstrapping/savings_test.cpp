// What a bootstrap saves, and a bootstrap without it: the errors of the model either way, keys that
// were made without, and the same bits where only the order of the work differs.
#include "support/boot_world.h"

namespace crenel::circuits {
namespace {

using ckks::Ciphertext;
using test::boot_options;
using test::BootWorld;
using test::Values;

class BootstrapSavingsTest : public test::SchemeTest {
 protected:
  void SetUp() override {
    SchemeTest::SetUp();
    if (!IsSkipped() && GetParam() == "ref") GTEST_SKIP() << "compared with the other devices";
  }
  /// One bootstrap of uniform values, with the noise of the model (see bootstrapping_test.cpp).
  static void expect_works(BootWorld& w, const Bootstrapper& boot, test::Rng& rng) {
    const u64 slots = boot.options().slots;
    const auto plan = plan_bootstrap(w.params(), boot.options());
    const Values x = test::random_values(rng, slots);
    const Ciphertext out = boot(w.encrypt(boot, x));
    EXPECT_EQ(out.level(), boot.levels().output);
    const Values found = w.client.decrypt(out), expected = test::after_sine(w.context, plan, x);
    const SlotError noise =
        test::noise_of(estimate_precision(model_of(w.params(), plan), Message{}));
    EXPECT_LT(test::max_error(found, expected), std::max(4.0 * noise.max, 12.0 * noise.rms));
    if (slots < w.slots()) return;
    const double ratio = test::rms_error(found, expected) / noise.rms;
    EXPECT_LT(ratio, 1.4);
    EXPECT_GT(ratio, 0.6);
  }
};

TEST_P(BootstrapSavingsTest, TurnedOff) {
  auto& w = test::boot_world(GetParam());
  auto rng = test::test_rng();
  for (u64 slots : {w.slots(), u64(32)}) {
    SCOPED_TRACE(cat(slots, " slots"));
    const auto saved = boot_options([&](auto& x) { x.slots = slots; });
    const auto plain = boot_options([&](auto& x) {
      x.slots = slots;
      x.savings.over_mod_raise = false;
    });
    EXPECT_TRUE(plan_bootstrap(w.params(), saved).over_mod_raise());
    const auto keys = w.keys_for(plain);
    Bootstrapper boot(w.context, keys, plain);
    EXPECT_FALSE(boot.describe().over_mod_raise);
    EXPECT_FALSE(boot.describe().keys_decided);
    EXPECT_EQ(boot.levels().raised, boot.levels().eval_mod + 4);
    expect_works(w, boot, rng);
    // Keys that were made without it serve options that leave it open.
    const Bootstrapper fitted(w.context, keys, saved);
    EXPECT_FALSE(fitted.describe().over_mod_raise);
    EXPECT_TRUE(fitted.describe().keys_decided);
    auto demanded = saved;
    demanded.savings.over_mod_raise = true;
    test::expect_error<KeyMissingError>([&] { Bootstrapper(w.context, keys, demanded); });
  }
}

TEST_P(BootstrapSavingsTest, FoldedSumsAreTheSameBits) {
  auto& w = test::boot_world(GetParam());
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, 2 * w.slots());
  Bootstrapper folded = w.boot();
  Bootstrapper plain = w.boot(boot_options([](auto& o) { o.savings.folded_sums = false; }));
  const Ciphertext in = w.encrypt(folded, x);
  const Ciphertext a = folded(in), b = plain(in);
  EXPECT_EQ(test::bits(a), test::bits(b));
  EXPECT_EQ(a.scale(), b.scale());
}

TEST_P(BootstrapSavingsTest, TakeALevelLess) {
  auto& w = test::boot_world(GetParam());
  auto rng = test::test_rng();
  // As many factors as without it: one level lower, the result where it was.
  for (std::vector<u32> stages : {std::vector<u32>{3, 3, 2, 2}, std::vector<u32>{5, 5}}) {
    const auto o = boot_options([&](auto& x) { x.coeff_to_slot_stages = stages; });
    Bootstrapper boot(w.context, w.keys_for(o), o);
    EXPECT_EQ(boot.levels().raised, boot.levels().eval_mod + stages.size() - 1);
    EXPECT_EQ(boot.levels().output, 13u);
    expect_works(w, boot, rng);
  }
}

CRENEL_DEVICE_SUITE(BootstrapSavingsTest);

}  // namespace
}  // namespace crenel::circuits
