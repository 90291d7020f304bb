// Contexts, requests for evaluation keys, and what the key set tells about itself.
#include "crenel/ckks/context.h"

#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using test::Values;

TEST(CkksContextDevices, UnknownDevicesAreRefused) {
  const Params params = Params::preset("toy-boot40", true);
  for (const char* name : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:0", "CPU"}) {
    const auto e = test::expect_error<DeviceError>([&] { Context(params, name); });
    EXPECT_EQ(e.field("device"), name);
  }
}

class CkksContext : public test::SchemeTest {};

TEST_P(CkksContext, KnowsParametersAndDevice) {
  auto& w = world("toy-boot40");
  EXPECT_EQ(w.context.params(), Params::preset("toy-boot40", true));
  EXPECT_EQ(w.context.device().info().name, device_->info().name);
  EXPECT_EQ(&w.context.stream().device(), &w.context.device());
  const Context copy = w.context;
  EXPECT_EQ(&copy.device(), &w.context.device());
}

TEST_P(CkksContext, OutlivedByItsObjects) {
  std::optional<Ciphertext> c;
  std::optional<Evaluator> ev;
  std::optional<Client> client;
  {
    const Context context(Params::preset("toy-boot40", true), GetParam());
    client.emplace(context.keygen());
    ev.emplace(context.evaluator(client->evaluation_keys({{1}, false, true})));
    c.emplace(client->encrypt(Values{0.25, 0.5}, 2u));
  }
  const auto found = client->decrypt(ev->rotate(*c, 1));
  EXPECT_NEAR(found[0].real(), 0.5, 1e-6);
}

TEST_P(CkksContext, WaitsForItsStream) {
  auto& w = world("toy-boot40");
  EXPECT_NO_THROW(w.context.synchronize());
  // It is the stream's: inside a recording, where there are such, there is nothing to wait for.
  if (w.context.device().info().kind != device::Kind::cuda) return;
  const Ciphertext c = w.client.encrypt(Values{0.5}, 2u);
  test::expect_error<StateError>([&] {
    Graph(w.ev, std::span(&c, 1), [&](std::span<const Ciphertext> in) {
      w.context.synchronize();
      std::vector<Ciphertext> out;
      out.push_back(in[0].clone());
      return out;
    });
  });
}

TEST_P(CkksContext, MakesOnlyTheKeysAskedFor) {
  auto& w = world("toy-boot40");
  const i64 half = static_cast<i64>(w.slots());
  const EvaluationKeys none = w.client.evaluation_keys({{}, false, false});
  EXPECT_FALSE(none.has_relinearisation());
  EXPECT_FALSE(none.has_conjugation());
  EXPECT_TRUE(none.rotations().empty());
  EXPECT_EQ(none.bytes(), 0u);
  EXPECT_EQ(none.wire_bytes(), 0u);

  const auto keys =
      w.client.evaluation_keys({{1, 2, -3, 0, half, 1 + half, half / 2}, true, false});
  EXPECT_FALSE(keys.has_relinearisation());
  EXPECT_TRUE(keys.has_conjugation());
  EXPECT_EQ(keys.rotations(), (std::vector<i64>{-3, 1, 2, half / 2}));
  const u64 one = u64(2) * 4 * w.params().ring_dim() * w.params().dnum() *
                  (w.params().chain_limbs() + w.params().alpha());
  EXPECT_EQ(keys.bytes(), 5 * one);
  EXPECT_EQ(keys.wire_bytes(), 5 * (one / 2 + 32));

  const EvaluationKeys standard = w.client.evaluation_keys();
  EXPECT_TRUE(standard.has_relinearisation());
  EXPECT_EQ(standard.bytes(), one);
}

TEST_P(CkksContext, EmptyKeysServeWhatNeedsNone) {
  auto& w = world("toy-boot40");
  const Evaluator ev = w.context.evaluator({});
  const Ciphertext c = w.client.encrypt(Values{0.5, 0.25}, 3u);
  EXPECT_NEAR(w.client.decrypt(ev.rescale(ev.multiply(ev.add(c, c), 0.5)))[0].real(), 0.5, 1e-6);
  EXPECT_FALSE(ev.keys().has_relinearisation());
  EXPECT_FALSE(ev.keys().has_conjugation());
  EXPECT_TRUE(ev.keys().rotations().empty());
  EXPECT_EQ(ev.keys().bytes(), 0u);
}

TEST_P(CkksContext, RefusesKeysOfOtherParameters) {
  auto& w = world("toy-boot40");
  auto& other = world("s40");
  const auto e = test::expect_error<StateError>([&] { w.context.evaluator(other.keys); });
  EXPECT_EQ(e.field("found"), other.params().id());
  EXPECT_EQ(e.field("expected"), w.params().id());
}

CRENEL_DEVICE_SUITE(CkksContext);

}  // namespace
}  // namespace crenel::ckks
