// One device, many keys: contexts that share a device, recordings and bootstrappers that serve
// every client, keys that lie in host memory.
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "ckks/objects.h"
#include "crenel/ckks/serialize.h"
#include "support/boot_world.h"
#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using circuits::BootstrapOptions;
using circuits::Bootstrapper;
using test::Complex;
using test::Values;

class Tenants : public test::SchemeTest {
 protected:
  /// A client of its own with keys for bootstraps of `options`.
  struct Tenant {
    Client client;
    EvaluationKeys keys;
    Evaluator ev;
  };
  static Tenant make_tenant(const Context& context, const BootstrapOptions& options) {
    Client client = context.keygen();
    EvaluationKeys keys =
        client.evaluation_keys(circuits::bootstrap_key_request(context.params(), options));
    Evaluator ev = context.evaluator(keys);
    return {std::move(client), std::move(keys), std::move(ev)};
  }
  static BootstrapOptions few_slots() {
    BootstrapOptions o;
    o.slots = 64;
    return o;
  }
  static Context boot_context(std::shared_ptr<device::Device> device) {
    return Context(Params::preset("toy-boot40", true), std::move(device));
  }
};
CRENEL_FAST_DEVICE_SUITE(Tenants);

// What a recording may use of a client: every kind of key.
std::vector<Ciphertext> circuit(const Evaluator& ev, std::span<const Ciphertext> in) {
  const i64 steps[] = {0, 1, -2};
  std::vector<Ciphertext> out;
  out.push_back(ev.conjugate(ev.rotate_sum(ev.multiply_rescale(in[0], in[1]), steps)));
  out.push_back(ev.rotate(in[0], 3));
  return out;
}

TEST_P(Tenants, ContextsOfOneDeviceWorkTogether) {
  const auto& params = test::world_params("s40");
  const Context first(params, device_), second(params, device_);
  EXPECT_EQ(&first.stream(), &second.stream());
  Client client = first.keygen();
  const EvaluationKeys keys = client.evaluation_keys({{1}, true, true});
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, params.slots());
  const Ciphertext a = client.encrypt(x);
  const Evaluator ev = second.evaluator(keys);
  const Ciphertext sum = ev.add(ev.rotate(a, 1), first.encode(x));
  const Values expected =
      test::zip_values(test::rolled(x, 1), x, [](Complex u, Complex v) { return u + v; });
  EXPECT_LE(test::max_error(client.decrypt(sum), expected), test::tolerance(params, 2));

  circuits::DiagonalMatrix twice{params.slots(), {{0, Values(params.slots(), 2.0)}}};
  const circuits::LinearTransform transform(first, twice);
  const Values doubled = test::map_values(x, [](Complex v) { return 2.0 * v; });
  EXPECT_LE(test::max_error(client.decrypt(transform(ev, a)), doubled), test::tolerance(params, 4));
}

TEST_P(Tenants, AnotherDeviceObjectIsRefusedOnAGpu) {
  if (device_->info().kind != device::Kind::cuda) GTEST_SKIP() << "host memory is everybody's";
  const auto& params = test::world_params("s40");
  const Context here(params, device_), there(params, GetParam());
  Client client = there.keygen();
  const Ciphertext a = client.encrypt(Values(4, 1.0));
  const Evaluator ev = here.evaluator({});
  test::expect_error<StateError>([&] { ev.negate(a); });
  const EvaluationKeys keys = client.evaluation_keys({{1}, false, true});
  test::expect_error<StateError>([&] { here.evaluator(keys); });
}

TEST_P(Tenants, ARecordingServesTheKeysOfEveryClient) {
  const auto& params = test::world_params("s40");
  const Context context(params, device_);
  auto rng = test::test_rng();
  std::unique_ptr<Graph> graph;
  const auto fresh = [&](Client& client) {
    std::vector<Ciphertext> in;
    for (int k = 0; k < 2; ++k)
      in.push_back(client.encrypt(test::random_values(rng, params.slots())));
    return in;
  };
  const KeyRequest request{{1, -2, 3, 5}, true, true};
  {  // the client that it was recorded with goes
    Client client = context.keygen();
    const Evaluator ev = context.evaluator(client.evaluation_keys(request));
    const auto in = fresh(client);
    graph = std::make_unique<Graph>(ev, in, Graph::KeyedFunction(circuit));
    EXPECT_EQ(test::bits(graph->replay(ev, in)[0]), test::bits(circuit(ev, in)[0]));
  }
  std::vector<Client> clients;
  std::vector<Evaluator> evs;
  for (int k = 0; k < 3; ++k) {
    clients.push_back(context.keygen());
    evs.push_back(context.evaluator(clients.back().evaluation_keys(request)));
  }
  for (int round = 0; round < 9; ++round) {
    const std::size_t k = static_cast<std::size_t>(round % 3);
    const auto in = fresh(clients[k]);
    const auto expected = circuit(evs[k], in);
    const auto& found = graph->replay(evs[k], in);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(test::bits(found[i]), test::bits(expected[i])) << "round " << round;
  }
  // Another stream waits for the replay before it.
  const Evaluator elsewhere = evs[1].on(context.device().make_stream());
  const auto in = fresh(clients[1]);
  elsewhere.stream().wait_for(context.stream());
  EXPECT_EQ(test::bits(graph->replay(elsewhere, in)[1]), test::bits(circuit(evs[1], in)[1]));
}

TEST_P(Tenants, KeysOfAReplayAreChecked) {
  const auto& params = test::world_params("s40");
  const Context context(params, device_);
  Client client = context.keygen();
  const Evaluator ev = context.evaluator(client.evaluation_keys({{1, -2, 3}, true, true}));
  std::vector<Ciphertext> in;
  for (int k = 0; k < 2; ++k) in.push_back(client.encrypt(Values(4, 0.5)));
  Graph keyed(ev, in, Graph::KeyedFunction(circuit));
  Graph plain(ev, in, [&](std::span<const Ciphertext> x) { return circuit(ev, x); });
  test::expect_error<StateError>([&] { keyed.replay(in); });
  test::expect_error<StateError>([&] { plain.replay(ev, in); });
  const Evaluator less = context.evaluator(client.evaluation_keys({{1}, false, true}));
  const auto missing = test::expect_error<KeyMissingError>([&] { keyed.replay(less, in); });
  EXPECT_EQ(missing.field("rotations"), "-2, 3");
  EXPECT_EQ(missing.field("key"), "conjugate");
  EXPECT_FALSE(keyed.serves(less));
  EXPECT_TRUE(keyed.serves(ev));
  EXPECT_FALSE(plain.serves(ev));
  const auto expected = circuit(ev, in);
  EXPECT_EQ(test::bits(keyed.replay(ev, in)[0]), test::bits(expected[0]))
      << "refusals change nothing";
}

TEST_P(Tenants, EvaluatorsOfOtherParametersAreRefused) {
  const auto& params = test::world_params("s40");
  const Context context(params, device_), other(test::world_params("s35"), device_);
  const KeyRequest request{{1, -2, 3}, true, true};
  Client client = context.keygen(), stranger = other.keygen();
  const Evaluator ev = context.evaluator(client.evaluation_keys(request)),
                  foreign = other.evaluator(stranger.evaluation_keys(request));
  std::vector<Ciphertext> in;
  for (int k = 0; k < 2; ++k) in.push_back(client.encrypt(Values(4, 0.5)));
  Graph graph(ev, in, Graph::KeyedFunction(circuit));
  const circuits::LinearTransform transform(context,
                                            {params.slots(), {{0, Values(params.slots(), 2.0)}}});
  const Context boots = boot_context(device_);
  const Bootstrapper boot(boots, few_slots());
  const Ciphertext theirs = stranger.encrypt(Values(4, 0.5));
  const auto refused = [&](const auto& call, const Context& expected) {
    const auto e = test::expect_error<StateError>(call);
    EXPECT_EQ(e.field("found"), other.params().id());
    EXPECT_EQ(e.field("expected"), expected.params().id());
  };
  refused([&] { graph.replay(foreign, in); }, context);
  refused([&] { transform(foreign, theirs); }, context);
  refused([&] { boot(foreign, theirs); }, boots);
  refused([&] { boot.eager(foreign, theirs); }, boots);
  test::expect_error<ParameterError>([&] { Context(params, std::shared_ptr<device::Device>()); });
}

TEST_P(Tenants, RecordingsDoNotNest) {
  const Context context(test::world_params("s40"), device_);
  Client client = context.keygen();
  const Evaluator ev = context.evaluator(client.evaluation_keys({{1, -2, 3}, true, true}));
  std::vector<Ciphertext> in;
  for (int k = 0; k < 2; ++k) in.push_back(client.encrypt(Values(4, 0.5)));
  const auto nested = [](const Evaluator& keys, std::span<const Ciphertext> x) {
    Graph inner(keys, x, Graph::KeyedFunction(circuit));
    return inner.replay(keys, x);
  };
  test::expect_error<StateError>([&] { Graph(ev, in, Graph::KeyedFunction(nested)); });
}

TEST_P(Tenants, AReplayTakesScalesThatAgree) {
  const auto& params = test::world_params("s40");
  const Context context(params, device_);
  Client client = context.keygen();
  const Evaluator ev = context.evaluator({});
  const double scale = params.scale(params.normal_top_level());
  const auto in = [&](double factor) {
    std::vector<Ciphertext> one;
    one.push_back(client.encrypt(Values(4, 0.5), {}, scale * factor));
    return one;
  };
  const Graph::KeyedFunction negate = [](const Evaluator& keys, std::span<const Ciphertext> x) {
    std::vector<Ciphertext> out;
    out.push_back(keys.negate(x[0]));
    return out;
  };
  Graph graph(ev, in(1.0), negate);
  EXPECT_EQ(graph.replay(ev, in(1.0 + 1e-14)).size(), 1u);
  test::expect_error<StateError>([&] { graph.replay(ev, in(1.0 + 1e-9)); });
}

// Of two clients of one context: silent garbage, where nobody asks.
TEST_P(Tenants, ABootstrapOfAnotherClientsCiphertextIsRefused) {
  const Context context = boot_context(device_);
  const BootstrapOptions options = few_slots();
  Tenant ours = make_tenant(context, options);
  Client theirs = context.keygen();
  const Ciphertext mine = ours.client.encrypt(Values(64, 0.25), 0u, 0.0, 64);
  const Ciphertext foreign = theirs.encrypt(Values(64, 0.25), 0u, 0.0, 64);
  const Bootstrapper keyless(context, options), keyed(context, ours.keys, options);
  const Evaluator staged = context.evaluator(ours.keys.staged(u64(1) << 30));
  BootstrapOptions pairs = options;
  pairs.message = circuits::BootstrapMessage::pair;
  const Bootstrapper pair(context, pairs);
  circuits::DiagonalMatrix doubled;
  doubled.slots = 64;
  doubled.diagonals[0] = Values(64, 2.0);
  circuits::LinearTransformOptions at_one;
  at_one.level = 1;
  const circuits::LinearTransform transform(context, doubled, at_one);
  const Ciphertext higher = theirs.encrypt(Values(64, 0.25), 1u, 0.0, 64);
  for (const auto& call : {std::function<void()>([&] { keyless(ours.ev, foreign); }),
                           {[&] { keyless.eager(ours.ev, foreign); }},
                           {[&] { keyed(foreign); }},
                           {[&] { keyless(staged, foreign); }},
                           {[&] { pair.pair(ours.ev, mine, foreign); }},
                           {[&] { transform(ours.ev, higher); }}}) {
    const auto e = test::expect_error<StateError>(call);
    EXPECT_EQ(e.field("found"), theirs.secret_key_id().text()) << e.what();
    EXPECT_EQ(e.field("expected"), ours.client.secret_key_id().text());
  }
  const Ciphertext out = keyless(ours.ev, mine);
  EXPECT_EQ(out.secret_key_id(), ours.client.secret_key_id());
  EXPECT_LE(test::max_error(ours.client.decrypt(out), Values(64, 0.25)),
            8 * keyless.describe().expected_error);
}

TEST_P(Tenants, OptionsAreThoseThatWereAskedFor) {
  const Context context = boot_context(device_);
  BootstrapOptions options = few_slots();
  const Bootstrapper highest(context, options);
  options.target_level = highest.levels().output;
  const Bootstrapper chosen(context, options);
  EXPECT_FALSE(highest.options().target_level);
  EXPECT_EQ(chosen.options().target_level, options.target_level);
}

// Plan, plaintexts, workspace and recording exist once.
TEST_P(Tenants, ASecondTenantCostsItsKeysOnly) {
  if (GetParam() == "ref") GTEST_SKIP() << "a bootstrap takes it seconds";
  const Context context = boot_context(device_);
  auto rng = test::test_rng();
  const BootstrapOptions options = few_slots();
  auto& stream = context.stream();
  std::vector<Tenant> tenants;
  std::vector<Bootstrapper> boots;
  constexpr std::size_t kMost = std::size_t(1) << 20;
  const int count = exhaustive() ? 4 : 2;
  for (int k = 0; k < count; ++k) {
    stream.synchronize();
    const std::size_t before = stream.bytes_in_use();
    tenants.push_back(make_tenant(context, options));
    Tenant& t = tenants.back();
    const std::size_t keys = stream.bytes_in_use() - before;
    boots.emplace_back(context, t.keys, options);
    const Values x = test::random_values(rng, 64);
    const double bound = 8 * boots.back().describe().expected_error;
    {
      const Ciphertext out = boots.back()(t.client.encrypt(x, 0u, 0.0, 64));
      EXPECT_LE(test::max_error(t.client.decrypt(out), x), bound) << "tenant " << k;
    }
    const std::size_t all = stream.bytes_in_use() - before;
    if (k != 0) {
      EXPECT_LE(all, keys + kMost) << "tenant " << k;
    }
  }
  // In turn, by the call's evaluator, from a bootstrapper without keys.
  const Bootstrapper boot(context, options);
  for (int round = 0; round < 2 * count; ++round) {
    Tenant& t = tenants[static_cast<std::size_t>(round * 3 % count)];
    const Values x = test::random_values(rng, 64);
    const Ciphertext in = t.client.encrypt(x, 0u, 0.0, 64);
    const Ciphertext out = boot(t.ev, in);
    EXPECT_EQ(test::bits(out), test::bits(boot.eager(t.ev, in)));
    EXPECT_LE(test::max_error(t.client.decrypt(out), x), 8 * boot.describe().expected_error);
  }
  test::expect_error<StateError>([&] { boot(tenants[0].client.encrypt(Values(64), 0u, 0.0, 64)); });
  const auto missing = test::expect_error<KeyMissingError>(
      [&] { boot(context.evaluator({}), tenants[0].client.encrypt(Values(64), 0u, 0.0, 64)); });
  EXPECT_NE(missing.field("key").find("relinearisation"), std::string::npos);
}

TEST_P(Tenants, BootstrapsFromSeveralThreadsDoNotMix) {
  if (GetParam() == "ref") GTEST_SKIP() << "a bootstrap takes it seconds";
  const Context context = boot_context(device_);
  const BootstrapOptions options = few_slots();
  const Bootstrapper boot(context, options);
  const int count = exhaustive() ? 4 : 2;
  std::vector<Tenant> tenants;
  std::vector<Ciphertext> inputs;
  std::vector<std::vector<u32>> expected;
  auto rng = test::test_rng();
  for (int k = 0; k < count; ++k) {
    tenants.push_back(make_tenant(context, options));
    inputs.push_back(tenants.back().client.encrypt(test::random_values(rng, 64), 0u, 0.0, 64));
    expected.push_back(test::bits(boot.eager(tenants.back().ev, inputs.back())));
  }
  std::vector<std::vector<u32>> found(inputs.size());
  std::vector<std::thread> threads;
  for (std::size_t k = 0; k < inputs.size(); ++k)
    threads.emplace_back([&, k] {
      for (int round = 0; round < 2; ++round) found[k] = test::bits(boot(tenants[k].ev, inputs[k]));
    });
  for (auto& thread : threads) thread.join();
  for (std::size_t k = 0; k < inputs.size(); ++k) EXPECT_EQ(found[k], expected[k]) << k;
}

TEST_P(Tenants, StagedKeysGiveTheSameBits) {
  if (GetParam() == "ref") GTEST_SKIP() << "a bootstrap takes it seconds";
  const Context context = boot_context(device_);
  const BootstrapOptions options = few_slots();
  Tenant t = make_tenant(context, options);
  const Bootstrapper boot(context, options);
  auto rng = test::test_rng();
  const Ciphertext in = t.client.encrypt(test::random_values(rng, 128), 0u, 0.0, 64, 2);
  const auto expected = test::bits(boot.eager(t.ev, in));
  const u64 all = t.keys.bytes();
  // CoeffToSlot's first factor reads sixteen keys at once: there is room for these.
  const u64 some = all / 10 * 9;
  const EvaluationKeys roomy = t.keys.staged(all), tight = t.keys.staged(some);
  EXPECT_LE(tight.bytes(), some);
  EXPECT_GT(tight.host_bytes(), 0u);
  EXPECT_EQ(tight.rotations(), t.keys.rotations());
  EXPECT_EQ(tight.wire_bytes(), t.keys.wire_bytes());
  for (const auto* keys : {&roomy, &tight}) {
    const Evaluator ev = context.evaluator(*keys);
    for (int round = 0; round < (exhaustive() ? 3 : 1); ++round)
      EXPECT_EQ(test::bits(boot(ev, in)), expected) << "round " << round;
    const Ciphertext x = t.client.encrypt(test::random_values(rng, 8));
    EXPECT_EQ(test::bits(ev.multiply(x, x)), test::bits(t.ev.multiply(x, x)));
  }
  test::expect_error<ParameterError>([&] { t.keys.staged(1); });
  test::expect_error<StateError>([&] { tight.staged(all); });
  test::expect_error<UnsupportedError>([&] { to_bytes(context, tight); });
  test::expect_error<StateError>(
      [&] { Graph(context.evaluator(tight), std::span(&in, 1), Graph::KeyedFunction(circuit)); });
}

TEST_P(Tenants, StagedKeysOfSeveralThreads) {
  const Context context(test::world_params("s40"), device_);
  Client client = context.keygen();
  const EvaluationKeys keys = client.evaluation_keys({{1, 2, 3, 4, 5}, true, true});
  const Evaluator direct = context.evaluator(keys);
  const u64 one = keys.bytes() / 7;
  const Evaluator staged = context.evaluator(keys.staged(3 * one + one / 2));
  const Ciphertext x = client.encrypt(Values(8, 0.5));
  std::vector<std::vector<u32>> expected, found(6);
  for (i64 k = 0; k < 6; ++k) expected.push_back(test::bits(direct.rotate(x, k)));
  std::vector<std::thread> threads;
  for (i64 k = 0; k < 6; ++k)
    threads.emplace_back([&, k] {
      for (int round = 0; round < 4; ++round)
        found[static_cast<std::size_t>(k)] = test::bits(staged.rotate(x, k));
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(found, expected);
  const i64 four[] = {1, 2, 3, 4};
  const auto e = test::expect_error<StateError>([&] { staged.rotate_sum(x, four); });
  EXPECT_EQ(e.field("keys"), "4");
  const i64 three[] = {1, 2, 3};
  EXPECT_EQ(test::bits(staged.rotate_sum(x, three)), test::bits(direct.rotate_sum(x, three)));
}

TEST_P(Tenants, StagedKeysFromAFile) {
  const Context context(test::world_params("s40"), device_);
  Client client = context.keygen();
  const EvaluationKeys keys = client.evaluation_keys({{1, 2, 3}, true, true});
  const auto path = std::filesystem::temp_directory_path() /
                    cat("crenel-staged-", GetParam(), "-", static_cast<long>(getpid()));
  save_evaluation_keys(context, keys, path.string());
  const std::size_t before = context.stream().bytes_in_use();
  const EvaluationKeys staged = load_evaluation_keys(context, path.string(), {}, keys.bytes() / 2);
  EXPECT_EQ(context.stream().bytes_in_use(), before);
  std::filesystem::remove(path);
  EXPECT_TRUE(staged.has_relinearisation() && staged.has_conjugation());
  const Evaluator ev = context.evaluator(staged), direct = context.evaluator(keys);
  const Ciphertext x = client.encrypt(Values(8, 0.5));
  for (i64 k : {1, 3, 2, 1})
    EXPECT_EQ(test::bits(ev.rotate(x, k)), test::bits(direct.rotate(x, k)));
  EXPECT_EQ(test::bits(ev.square(x)), test::bits(direct.square(x)));
}

TEST_P(Tenants, BatchesAreJoinedAndCut) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  std::vector<Values> rows;
  std::vector<Ciphertext> parts;
  for (u32 batch : {1u, 3u, 2u}) {
    rows.push_back(test::random_values(rng, batch * w.slots()));
    parts.push_back(w.client.encrypt(rows.back(), {}, 0.0, 0, batch));
  }
  const Ciphertext* pointers[] = {&parts[0], &parts[1], &parts[2]};
  const Ciphertext all = concatenate(pointers);
  EXPECT_EQ(all.batch(), 6u);
  EXPECT_EQ(test::bits(all.slice(1, 3)), test::bits(parts[1]));
  Values expected;
  for (const Values& r : rows) expected.insert(expected.end(), r.begin(), r.end());
  EXPECT_LE(test::max_error(w.client.decrypt(all), expected), test::tolerance(w.params()));
  EXPECT_EQ(test::bits(w.ev.rotate(all, 1).slice(4, 2)), test::bits(w.ev.rotate(parts[2], 1)));

  test::expect_error<ParameterError>([&] { all.slice(0, 0); });
  test::expect_error<ParameterError>([&] { all.slice(6, 1); });
  test::expect_error<ParameterError>([&] { all.slice(4, 3); });
  test::expect_error<ParameterError>([&] { concatenate({}); });
  const Ciphertext low = w.ev.adjust_level(parts[0], 1);
  const Ciphertext* uneven[] = {&parts[0], &low};
  EXPECT_EQ(test::expect_error<StateError>([&] { concatenate(uneven); }).field("part"), "1");
}

}  // namespace
}  // namespace crenel::ckks
