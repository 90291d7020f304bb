// The range of a bootstrap's messages: stated bounds are checked against it and carried, and a
// checked evaluator names a bootstrap whose message was too large.
#include "support/boot_world.h"

namespace crenel::circuits {
namespace {

using ckks::Ciphertext;
using ckks::kUnknownBound;
using test::expect_error;
using test::Values;

class BootstrapBound : public test::DeviceTest {
 protected:
  /// A bootstrap takes ref seconds, and what is asked here are not its results.
  void SetUp() override {
    test::DeviceTest::SetUp();
    if (!IsSkipped() && GetParam() == "ref") GTEST_SKIP() << "asked of the other devices";
  }
  test::BootWorld& world() { return test::boot_world(GetParam()); }
};

TEST_P(BootstrapBound, IsCheckedBeforeWorkAndCarriedWithTheSameBits) {
  auto& w = world();
  auto rng = test::test_rng();
  const Bootstrapper boot = w.boot();
  const Values v = test::random_values(rng, boot.options().slots, 0.7);
  const Ciphertext bare = w.encrypt(boot, v);
  const auto encrypt = [&](double bound) {
    Ciphertext c = bare.clone();
    c.state_bound(bound);
    return c;
  };
  const Ciphertext expected = boot(bare);
  EXPECT_EQ(expected.bound(), kUnknownBound);
  const Ciphertext found = boot(encrypt(1.0));
  EXPECT_EQ(found.bound(), 1.0);
  EXPECT_EQ(test::bits(found), test::bits(expected));
  // The same room as the error model's: an eighth of q0 over the scale of the message.
  const ckks::ErrorModel model(w.params());
  const auto room = [&](double bound) {
    return boot(model, model.input(bound, false, boot.levels().input, 0.0, boot.options().slots));
  };
  const auto e = expect_error<StateError>([&] { boot(encrypt(1e3)); });
  EXPECT_EQ(e.field("operation"), "bootstrap");
  EXPECT_EQ(e.field("level"), cat(boot.levels().input));
  EXPECT_EQ(e.field("bound"), "1000");
  const double most = std::stod(e.field("max_value"));
  EXPECT_NEAR(most, 4.0, 0.1) << "2^5 / 8";
  EXPECT_NO_THROW(room(0.99 * most));
  EXPECT_THROW(room(1.01 * most), StateError);
  EXPECT_EQ(boot(encrypt(most)).bound(), most);
  EXPECT_THROW(boot(encrypt(1.001 * most)), StateError);
}

TEST_P(BootstrapBound, PairsHaveTheirOwn) {
  auto& w = world();
  auto rng = test::test_rng();
  BootstrapOptions o;
  o.message = BootstrapMessage::pair;
  const Bootstrapper boot = w.boot(o);
  const auto encrypt = [&](double bound) {
    return w.client.encrypt(test::random_reals(rng, boot.options().slots), boot.levels().input, 0.0,
                            boot.options().slots, 1, bound);
  };
  const auto [u, v] = boot.pair(encrypt(1.0), encrypt(1.5));
  EXPECT_EQ(u.bound(), 1.0);
  EXPECT_EQ(v.bound(), 1.5);
  EXPECT_THROW(boot.pair(encrypt(3.0), encrypt(3.0)), StateError);
}

TEST_P(BootstrapBound, ACheckedEvaluatorNamesTheBootstrap) {
  auto& w = world();
  auto rng = test::test_rng();
  BootstrapOptions o;
  o.message_ratio = 5;
  const Bootstrapper boot(w.context, o);
  const ckks::Evaluator ev = w.context.evaluator(w.keys()), checked = ev.checked(w.client);
  const Values v = test::random_values(rng, boot.options().slots, 0.7);
  const Ciphertext small = w.encrypt(boot, v);
  EXPECT_EQ(test::bits(boot(checked, small)), test::bits(boot(ev, small)));
  // A constant is one coefficient; beyond a quarter of 2^5 it comes back as another.
  const double value = std::uniform_real_distribution<>(9.0, 15.0)(rng);
  const Ciphertext large = w.encrypt(boot, Values(boot.options().slots, value));
  const auto e = expect_error<StateError>([&] { boot(checked, large); });
  EXPECT_EQ(e.field("operation"), "bootstrap");
  EXPECT_NEAR(std::stod(e.field("factor")), value / 8.0, 0.05);
  EXPECT_GT(std::abs(w.client.decrypt(boot(ev, large))[0] - value), 1.0) << "without a sign";
}

CRENEL_DEVICE_SUITE(BootstrapBound);

}  // namespace
}  // namespace crenel::circuits
