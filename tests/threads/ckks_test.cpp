// One context and its keys, evaluators, loaders and bootstrapper, from eight threads at once.
#include <unistd.h>

#include <filesystem>

#include "crenel/ckks/serialize.h"
#include "support/boot_world.h"
#include "support/together.h"

namespace crenel::ckks {
namespace {

using circuits::BootstrapOptions;
using circuits::Bootstrapper;
using test::kThreads;
using test::together;
using test::Values;

class ThreadsCkks : public test::SchemeTest {
 protected:
  int rounds() const { return exhaustive() ? 6 : 1; }
};
CRENEL_DEVICE_SUITE(ThreadsCkks);

TEST_P(ThreadsCkks, OneEvaluatorAndOneClient) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  std::vector<Values> xs;
  for (u64 t = 0; t < kThreads; ++t) xs.push_back(test::random_values(rng, w.slots()));
  const double bound = test::tolerance(w.params(), 4);
  std::vector<double> worst(kThreads, 0.0);
  together(kThreads, [&](u64 t) {
    for (int round = 0; round < rounds(); ++round) {
      const Ciphertext a = w.client.encrypt(xs[t]);
      const Ciphertext moved = w.ev.conjugate(w.ev.rotate(w.ev.add(a, a), 1));
      Values expected = test::rolled(xs[t], 1);
      for (auto& v : expected) v = 2.0 * std::conj(v);
      worst[t] = std::max(worst[t], test::max_error(w.client.decrypt(moved), expected));
    }
  });
  for (u64 t = 0; t < kThreads; ++t) EXPECT_LE(worst[t], bound) << t;
}

TEST_P(ThreadsCkks, ProductsWithWhatTheyShare) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Ciphertext a = w.client.encrypt(test::random_values(rng, w.slots()));
  const Ciphertext b = w.client.encrypt(test::random_values(rng, w.slots()));
  const auto work = [&](i64 k) {
    const i64 steps[] = {0, 1, 1 + k % 3};
    return test::bits(w.ev.rotate_sum(w.ev.multiply_rescale(a, b), steps));
  };
  std::vector<std::vector<u32>> expected;
  for (i64 k = 0; k < 3; ++k) expected.push_back(work(k));
  std::atomic<u64> wrong{0};
  together(kThreads, [&](u64 t) {
    for (int round = 0; round < rounds(); ++round)
      if (work(static_cast<i64>(t)) != expected[t % 3]) ++wrong;
  });
  EXPECT_EQ(wrong, 0u);
}

TEST_P(ThreadsCkks, StagedKeysAndLoaders) {
  const Context context(test::world_params("s40"), device_);
  Client client = context.keygen();
  const EvaluationKeys keys = client.evaluation_keys({{1, 2, 3, 4, 5}, true, true});
  const Evaluator direct = context.evaluator(keys);
  const Ciphertext x = client.encrypt(Values(8, 0.5));
  std::vector<std::vector<u32>> expected;
  for (i64 k = 0; k < 6; ++k) expected.push_back(test::bits(direct.rotate(x, k)));
  const auto path = std::filesystem::temp_directory_path() /
                    cat("crenel-threads-", GetParam(), "-", static_cast<long>(getpid()));
  save_evaluation_keys(context, keys, path.string());
  const std::vector<u8> bytes = to_bytes(context, x);
  const u64 room = keys.bytes() / 2;
  const EvaluationKeys staged = keys.staged(room);
  const Evaluator shared = context.evaluator(staged);
  std::atomic<u64> wrong{0};
  together(kThreads, [&](u64 t) {
    const u64 k = t % 6;
    for (int round = 0; round < rounds(); ++round) {
      if (test::bits(shared.rotate(x, static_cast<i64>(k))) != expected[k]) ++wrong;
      if (t % 4 != 0) continue;
      const Evaluator own =
          context.evaluator(t == 0 ? load_evaluation_keys(context, path.string(), {})
                                   : load_evaluation_keys(context, path.string(), {}, room));
      const Ciphertext y = ciphertext_from_bytes(context, bytes);
      if (test::bits(own.rotate(y, static_cast<i64>(k))) != expected[k]) ++wrong;
    }
  });
  std::filesystem::remove(path);
  EXPECT_EQ(wrong, 0u);
}

// Contexts, matrices and bootstrappers are made by all of them at the same time, too.
TEST_P(ThreadsCkks, TenantsOfOneBootstrapper) {
  if (!exhaustive()) GTEST_SKIP() << "a minute and more; cpu runs the same code above the kernels";
  const Context context(Params::preset("toy-boot40", true), device_);
  BootstrapOptions options;
  options.slots = 64;
  options.keys = circuits::KeyMode::minimal;
  auto rng = test::test_rng();
  struct Tenant {
    Client client;
    Evaluator ev;
    Ciphertext in;
    std::vector<u32> expected;
  };
  std::vector<Tenant> tenants;
  const Bootstrapper boot(context, options);
  for (int k = 0; k < 2; ++k) {
    Client client = context.keygen();
    const EvaluationKeys keys =
        client.evaluation_keys(circuits::bootstrap_key_request(context.params(), options));
    // Of one tenant the keys lie in host memory.
    const Evaluator ev = context.evaluator(k == 0 ? keys : keys.staged(keys.bytes() / 2));
    Ciphertext in = client.encrypt(test::random_values(rng, 64), 0u, 0.0, 64);
    auto expected = test::bits(boot.eager(context.evaluator(keys), in));
    tenants.push_back({std::move(client), ev, std::move(in), std::move(expected)});
  }
  std::atomic<u64> wrong{0};
  together(kThreads, [&](u64 t) {
    const Tenant& tenant = tenants[t % tenants.size()];
    const Bootstrapper own(context, options);
    if (test::bits((t % 4 < 2 ? boot : own)(tenant.ev, tenant.in)) != tenant.expected) ++wrong;
  });
  EXPECT_EQ(wrong, 0u);
}

TEST_P(ThreadsCkks, ContextsOfOneDevice) {
  std::atomic<u64> wrong{0};
  together(kThreads, [&](u64 t) {
    const Context context(test::world_params("s40"), device_);
    Client client = context.keygen();
    const Evaluator ev = context.evaluator(client.evaluation_keys({{1}, false, false}));
    const double v = 0.125 * static_cast<double>(t);
    const auto got =
        client.decrypt(ev.rotate(client.encrypt(Values(context.params().slots(), v)), 1));
    if (std::abs(got[0] - v) > 1e-6) ++wrong;
  });
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace crenel::ckks
