// Devices that divide the limbs of every polynomial: bootstraps, keys and recordings have the bits
// of one device, and each part its share of the memory.
#include <thread>

#include "ckks/objects.h"
#include "crenel/ckks/copies.h"
#include "crenel/core/error.h"
#include "support/boot_world.h"
#include "support/ckks_world.h"
#include "support/devices.h"

namespace crenel::ckks {
namespace {

using circuits::Bootstrapper;

// A GPU machine names its own: CRENEL_DEVICES=cuda:0+1.
std::vector<std::string> split_devices() {
  if (std::getenv("CRENEL_DEVICES") == nullptr)
    return {"cpu+cpu", "cpu+cpu+cpu", "cpu+cpu+cpu+cpu"};
  std::vector<std::string> names = test::test_devices();
  std::erase_if(names, [](const std::string& name) { return name.find('+') == std::string::npos; });
  return names;
}

class SplitDevices : public test::DeviceTest {};
CRENEL_SUITE_OVER(SplitDevices, split_devices());

TEST_P(SplitDevices, BootstrapsHaveTheBitsOfOneDevice) {
  auto& home = test::boot_world("cpu");
  auto rng = test::test_rng();
  const Bootstrapper here = home.boot();
  const Ciphertext input = home.encrypt(here, test::random_values(rng, 2 * home.slots()));
  const auto expected = test::bits(here.eager(input));

  const Context there(home.params(), device_);
  const EvaluationKeys keys = copy_to(there, home.keys());
  const Bootstrapper boot(there, keys, here.options());
  const Ciphertext copy = copy_to(there, input);
  EXPECT_EQ(test::bits(boot.eager(copy)), expected);
  EXPECT_EQ(test::bits(boot(copy)), expected) << "recorded, or what stands for it";
  EXPECT_LT(test::max_error(home.client.decrypt(copy_to(home.context, boot(copy))),
                            home.client.decrypt(input)),
            8 * here.describe().expected_error);
}

TEST_P(SplitDevices, KeysAreDivided) {
  auto& home = test::boot_world("cpu");
  const Context there(home.params(), device_);
  const u64 before = device_->pools().in_use;
  std::vector<u64> parts_before;
  for (const auto& part : device_->parts()) parts_before.push_back(part->pools().in_use);
  const EvaluationKeys keys = copy_to(there, home.keys());
  const u64 all = device_->pools().in_use - before;
  EXPECT_GE(all, home.keys().bytes());
  const auto parts = device_->parts();
  u64 sum = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const u64 bytes = parts[p]->pools().in_use - parts_before[p];
    sum += bytes;
    // A limb more than the others at most, of every key.
    const double limbs = double(home.context.state().ring->everything().size());
    EXPECT_LE(double(bytes), double(all) * (1.0 / double(parts.size()) + 1.0 / limbs) + 4096);
  }
  EXPECT_GE(sum, home.keys().bytes());
  EXPECT_LE(sum, home.keys().bytes() + (u64(1) << 20));
}

// Keys that a recording has as an argument lie elsewhere on every part.
TEST_P(SplitDevices, RecordingsServeOtherClients) {
  const auto params = test::world_params("s40");
  const Context context(params, device_);
  auto rng = test::test_rng();
  const auto x = test::random_values(rng, params.slots());
  const i64 steps[] = {0, 1, -2};
  const auto circuit = [&](const Evaluator& ev, std::span<const Ciphertext> in) {
    std::vector<Ciphertext> out;
    out.push_back(ev.conjugate(ev.rotate_sum(ev.multiply_rescale(in[0], in[0]), steps)));
    return out;
  };
  std::unique_ptr<Graph> graph;
  for (int client = 0; client < 2; ++client) {
    Client c = context.keygen();
    const Evaluator ev = context.evaluator(c.evaluation_keys({{1, -2}, true, true}));
    std::vector<Ciphertext> in;
    in.push_back(c.encrypt(x));
    const auto expected = circuit(ev, in);
    if (!graph) graph = std::make_unique<Graph>(ev, in, Graph::KeyedFunction(circuit));
    EXPECT_EQ(test::bits(graph->replay(ev, in)[0]), test::bits(expected[0])) << client;
  }
}

TEST_P(SplitDevices, ThreadsShareIt) {
  const auto params = test::world_params("s40");
  const Context context(params, device_);
  Client client = context.keygen();
  const Evaluator ev = context.evaluator(client.evaluation_keys({{1}, false, true}));
  auto rng = test::test_rng();
  const Ciphertext a = client.encrypt(test::random_values(rng, params.slots()));
  const auto run = [&] { return test::bits(ev.rotate(ev.multiply_rescale(a, a), 1)); };
  const auto expected = run();
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 4; ++i) wrong += run() != expected;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(SplitDevices, StagedKeysAreRefused) {
  const auto params = test::world_params("s40");
  const Context context(params, device_);
  Client client = context.keygen();
  const EvaluationKeys keys = client.evaluation_keys({{1}, false, true});
  EXPECT_THROW(keys.staged(u64(1) << 30), UnsupportedError);
}

}  // namespace
}  // namespace crenel::ckks
