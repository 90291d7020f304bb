// Devices that divide the limbs of every polynomial: bootstraps, keys and recordings have the bits
// of one device, and each part its share of the memory.
#include <algorithm>
#include <thread>

#include "ckks/objects.h"
#include "crenel/ckks/copies.h"
#include "crenel/core/error.h"
#include "crenel/device/link.h"
#include "crenel/device/optimisations.h"
#include "device/apart.h"
#include "support/boot_world.h"
#include "support/ckks_world.h"
#include "support/devices.h"

namespace crenel::ckks {
namespace {

using circuits::Bootstrapper;

class SplitDevices : public test::DeviceTest {};
// A GPU machine names its own: CRENEL_DEVICES=cuda:0+1.
CRENEL_SUITE_OVER(SplitDevices,
                  test::divided_devices({"cpu+cpu", "cpu+cpu+cpu", "cpu+cpu+cpu+cpu"}));

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
  EXPECT_GE(sum, keys.bytes());
  EXPECT_LE(sum, keys.bytes() + (u64(1) << 20));
  // Relinearisation keys are there for either half of EvalMod's batch.
  u64 shared = 0;
  const rlwe::EvaluationKeySet& set = home.keys().data()->set;
  if (device_->parts().size() % 2 == 0)
    for (rlwe::KeyId id : {rlwe::kRelinearisation, rlwe::aligned_key(rlwe::kRelinearisation)})
      if (const rlwe::SwitchKey* key = set.find(id)) shared += key->pairs.bytes();
  EXPECT_EQ(keys.bytes(), home.keys().bytes() + shared);
  EXPECT_EQ(keys.wire_bytes(), home.keys().wire_bytes());
}

// Half of the parts bring each half of EvalMod's batch to its end, without a word of the others:
// an exchange of one group's limbs, or none where a group is one part. Bits stay.
TEST_P(SplitDevices, EvalModIsDividedByEntries) {
  auto& home = test::boot_world("cpu");
  auto rng = test::test_rng();
  const Bootstrapper here = home.boot();
  const Ciphertext input = home.encrypt(here, test::random_values(rng, 2 * home.slots()));
  const auto expected = test::bits(here.eager(input));
  const Context there(home.params(), device_);
  const Ciphertext copy = copy_to(there, input);
  for (const bool apart : {true, false}) {
    const auto all = device::Optimisations();
    device::set_optimisations(*device_,
                              apart ? all : all.without(device::Optimisation::entries_apart));
    const Bootstrapper boot(there, copy_to(there, home.keys()), here.options());
    EXPECT_EQ(test::bits(boot.eager(copy)), expected)
        << apart << "; repeat with CRENEL_SEED=" << test::run_seed();
    const circuits::BootstrapReport report = boot.describe();
    EXPECT_EQ(report.eval_mod_groups, apart ? device::entry_groups(there.stream()) : 1u);
    EXPECT_EQ(report.text().find("two vectors on 2 groups") != std::string::npos,
              report.eval_mod_groups == 2);
  }
  EXPECT_EQ(here.describe().eval_mod_groups, 1u);
  const EvaluationKeys divided = copy_to(there, home.keys());
  device::set_optimisations(*device_, device::Optimisations());
  EXPECT_EQ(Bootstrapper(there, divided, here.options()).describe().eval_mod_groups, 1u)
      << "keys that groups do not share";
  EXPECT_EQ(Bootstrapper(there, here.options()).describe().eval_mod_groups,
            device::entry_groups(there.stream()))
      << "without keys";
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

// Keys that groups of parts share lie otherwise than those that they do not, in sets without
// encapsulation, staged or made without entries_apart: a recording serves keys of its kind.
TEST_P(SplitDevices, RecordingsServeKeysOfTheirKind) {
  const auto params = test::world_params("s40");
  const Context context(params, device_);
  auto rng = test::test_rng();
  const auto x = test::random_values(rng, params.slots());
  const auto square = [](const Evaluator& ev, std::span<const Ciphertext> in) {
    std::vector<Ciphertext> out;
    out.push_back(ev.multiply_rescale(in[0], in[0]));
    return out;
  };
  Client client = context.keygen();
  KeyRequest request;
  const EvaluationKeys plain = client.evaluation_keys(request);
  request.encapsulation = true;
  const EvaluationKeys boot = client.evaluation_keys(request);
  const EvaluationKeys staged = boot.staged(boot.bytes());
  const bool alike = device_->parts().size() % 2 != 0;
  std::vector<Ciphertext> in;
  in.push_back(client.encrypt(x));
  for (const bool of_boot : {false, true}) {
    const Evaluator recorded = context.evaluator(of_boot ? boot : plain);
    const auto expected = test::bits(square(recorded, in)[0]);
    Graph graph(recorded, in, Graph::KeyedFunction(square));
    for (const EvaluationKeys* keys : {&plain, &boot, &staged}) {
      SCOPED_TRACE(cat("recorded with encapsulation: ", of_boot, ", then ",
                       keys == &plain  ? "without"
                       : keys == &boot ? "with"
                                       : "staged",
                       "; repeat with CRENEL_SEED=", test::run_seed()));
      const Evaluator ev = context.evaluator(*keys);
      const bool fits = alike || of_boot == (keys == &boot);
      EXPECT_EQ(graph.serves(ev), fits);
      if (fits)
        EXPECT_EQ(test::bits(graph.replay(ev, in)[0]), test::bits(square(ev, in)[0]));
      else
        EXPECT_THROW(graph.replay(ev, in), StateError);
    }
    EXPECT_EQ(test::bits(graph.replay(recorded, in)[0]), expected) << "after a refusal";
  }
}

// Exchanges recorded and not, by each way: an odd and an even number of them, so that replays begin
// with either room.
TEST_P(SplitDevices, RecordingsAndMeetingsHaveTheSameBits) {
  const auto params = test::world_params("s40");
  const Context home(params, "cpu"), there(params, device_);
  Client client = home.keygen();
  const EvaluationKeys keys = client.evaluation_keys({{1, 3}, false, true});
  const Evaluator one = home.evaluator(keys), several = there.evaluator(copy_to(there, keys));
  auto rng = test::test_rng();
  const auto circuit = [](const Evaluator& ev, const Ciphertext& a, bool more) {
    Ciphertext b = ev.rotate(ev.multiply_rescale(a, a), 1);
    if (more) b = ev.rescale(ev.multiply(b, b));
    return b;
  };
  using device::ExchangeBy;
  for (const auto way : {ExchangeBy::transforms, ExchangeBy::events, ExchangeBy::kernels}) {
    device::exchange_by(*device_, way);
    for (const bool more : {false, true}) {
      std::vector<Ciphertext> inputs;
      inputs.push_back(copy_to(there, client.encrypt(test::random_values(rng, params.slots()))));
      Graph graph(several, inputs, Graph::Function([&](std::span<const Ciphertext> in) {
                    std::vector<Ciphertext> out;
                    out.push_back(circuit(several, in[0], more));
                    return out;
                  }));
      for (int turn = 0; turn < 6; ++turn) {
        const Ciphertext a = client.encrypt(test::random_values(rng, params.slots()));
        const auto expected = test::bits(circuit(one, a, more));
        inputs[0] = copy_to(there, a);
        const auto replayed = graph.replay(inputs);
        const Ciphertext eager = circuit(several, inputs[0], more);
        const auto again = graph.replay(inputs);  // behind both, and nobody waited
        EXPECT_EQ(test::bits(replayed[0]), expected) << name_of(way) << more << turn;
        EXPECT_EQ(test::bits(eager), expected) << name_of(way) << more << turn;
        EXPECT_EQ(test::bits(again[0]), expected) << name_of(way) << more << turn;
      }
    }
  }
}

// Each with a recording of its own, beside operations that are queued one by one.
TEST_P(SplitDevices, ThreadsReplay) {
  const auto params = test::world_params("s40");
  const Context context(params, device_);
  Client client = context.keygen();
  const Evaluator ev = context.evaluator(client.evaluation_keys({{1}, false, true}));
  auto rng = test::test_rng();
  const Ciphertext a = client.encrypt(test::random_values(rng, params.slots()));
  const auto run = [&](const Ciphertext& x) { return ev.rotate(ev.multiply_rescale(x, x), 1); };
  const auto expected = test::bits(run(a));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      std::vector<Ciphertext> in;
      in.push_back(ev.add(a, a));
      in[0] = ev.sub(in[0], a);
      Graph graph(ev, in, Graph::Function([&](std::span<const Ciphertext> of) {
                    std::vector<Ciphertext> out;
                    out.push_back(run(of[0]));
                    return out;
                  }));
      for (int i = 0; i < 4; ++i) {
        const auto replayed = graph.replay(in);
        wrong += test::bits(run(a)) != expected;
        wrong += test::bits(replayed[0]) != expected;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
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

// Keys of many shapes take turns in frames: each part has its own limbs of the one that is there.
TEST_P(SplitDevices, StagedKeysHaveTheBitsOfOneDevice) {
  const auto params = test::world_params("s40");
  const Context home(params, "cpu"), there(params, device_);
  Client client = home.keygen();
  auto rng = test::test_rng();
  KeyRequest request{{1, 2, 3, 4, 5, 6}, true, true};
  for (i64 step : request.rotations)
    request.rotation_levels[step] = 1 + static_cast<u32>(rng() % params.max_level());
  const EvaluationKeys whole = client.evaluation_keys(request), copies = copy_to(there, whole);
  std::vector<u64> sizes;
  copies.data()->set.for_each(
      [&](const rlwe::SwitchKey& key) { sizes.push_back(key.pairs.bytes()); });
  std::sort(sizes.rbegin(), sizes.rend());
  const u64 budget = sizes[0] + sizes[1] + rng() % (sizes[0] + 1);
  const u64 before = device_->pools().in_use;
  const EvaluationKeys staged = copies.staged(budget);
  EXPECT_GE(staged.bytes(), sizes[0] + sizes[1]);
  EXPECT_LE(staged.bytes(), budget);
  u64 parts = 0;
  for (const auto& part : device_->parts()) parts += part->pools().in_use;
  EXPECT_EQ(device_->pools().in_use - before, staged.bytes());
  EXPECT_LE(parts, device_->pools().in_use + (u64(1) << 20));

  const Evaluator one = home.evaluator(whole), several = there.evaluator(staged);
  const auto x = test::random_values(rng, params.slots());
  const auto same = [&](u32 level, const auto& f) {
    const Ciphertext a = client.encrypt(x, level);
    EXPECT_EQ(test::bits(f(several, copy_to(there, a))), test::bits(f(one, a)));
  };
  for (int turn = 0; turn < 24; ++turn) {
    const i64 step = 1 + static_cast<i64>(rng() % 6);
    const u32 level = 1 + static_cast<u32>(rng() % request.rotation_levels[step]);
    SCOPED_TRACE(cat("rotation by ", step, " at level ", level,
                     "; repeat with CRENEL_SEED=", test::run_seed()));
    same(level, [&](const Evaluator& ev, const Ciphertext& a) { return ev.rotate(a, step); });
  }
  const i64 pair[] = {2, 5};
  const u32 both = std::min(request.rotation_levels[2], request.rotation_levels[5]);
  same(both, [&](const Evaluator& ev, const Ciphertext& a) { return ev.rotate_sum(a, pair); });
  same(params.max_level(), [&](const Evaluator& ev, const Ciphertext& a) {
    return ev.conjugate(ev.multiply_rescale(a, a));
  });
  EXPECT_THROW(copies.staged(sizes[0] + sizes[1] - 1), ParameterError);
}

// Keys of encapsulation stay; the others come ahead of use, twice: the second time by the order.
TEST_P(SplitDevices, BootstrapsWithStagedKeys) {
  auto& home = test::boot_world("cpu");
  auto rng = test::test_rng();
  const Bootstrapper here = home.boot();
  const Ciphertext input = home.encrypt(here, test::random_values(rng, 2 * home.slots()));
  const auto expected = test::bits(here.eager(input));
  const Context there(home.params(), device_);
  const EvaluationKeys keys = copy_to(there, home.keys());
  const EvaluationKeys staged = keys.staged(keys.bytes() / 4 * 3);  // 16 are read at once
  EXPECT_LE(staged.bytes(), keys.bytes() / 4 * 3);
  const Bootstrapper boot(there, staged, here.options());
  EXPECT_EQ(boot.describe().eval_mod_groups, 1u);
  const Ciphertext copy = copy_to(there, input);
  for (int pass = 0; pass < 2; ++pass)
    EXPECT_EQ(test::bits(boot.eager(copy)), expected)
        << "pass " << pass << "; repeat with CRENEL_SEED=" << test::run_seed();
}

}  // namespace
}  // namespace crenel::ckks
