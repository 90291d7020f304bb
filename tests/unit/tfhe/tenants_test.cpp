// Contexts that share a Device object, and tenants that share a context.
#include <optional>
#include <thread>

#include "support/tfhe_world.h"

namespace crenel::tfhe {
namespace {

using test::Messages;

const Messages kLeft{0, 1, 0, 1}, kRight{0, 0, 1, 1}, kXor{0, 1, 1, 0};

class TfheTenants : public test::TfheTest {};

TEST_P(TfheTenants, ContextsOnOneDeviceWorkTogether) {
  const Context first(test::tfhe_params("padded:r3"), device_),
      second(test::tfhe_params("padded:r3"), device_);
  EXPECT_EQ(&first.device(), device_.get());
  EXPECT_EQ(&first.stream(), &second.stream());
  Client client = first.keygen();
  const Evaluator ev = second.evaluator(client.evaluation_keys(), {0.0});
  const Ciphertext a = client.encrypt(kLeft);
  Client again = Client::import_secret_key(second, client.export_secret_key());
  const Ciphertext b = again.encrypt(kRight), c = ev.gate(Gate::xor_, a, b);
  EXPECT_EQ(client.decrypt(c), kXor);
  EXPECT_EQ(again.decrypt(c), kXor);
  const Ciphertext even = client.encrypt(Messages{1, 0, 1}), odd = again.encrypt(Messages{1, 1, 0});
  const Ciphertext* parts[] = {&even, &odd};
  EXPECT_EQ(client.decrypt(concatenate(parts)), (Messages{1, 0, 1, 1, 1, 0}));
  const Lut f{Messages{3, 5, 0, 0, 0, 0, 0, 0}, 0};
  EXPECT_EQ(client.decrypt(ev.lut(a, first.prepare({&f, 1}))), (Messages{3, 5, 3, 5}));
}

TEST_P(TfheTenants, OtherParametersShareTheDeviceToo) {
  const Context gates(test::tfhe_params("gadget"), device_),
      tables(test::tfhe_params("padded:r3"), device_);
  EXPECT_EQ(&gates.stream(), &tables.stream());
  Client client = gates.keygen();
  const Ciphertext a = client.encrypt(kLeft);
  EXPECT_THROW(tables.keygen().decrypt(a), StateError);
  EXPECT_EQ(client.decrypt(a), kLeft);
}

TEST_P(TfheTenants, OtherDeviceObjectsAreRefusedOnCudaOnly) {
  const Context first(test::tfhe_params("gadget:r3"), GetParam()),
      second(test::tfhe_params("gadget:r3"), GetParam());
  EXPECT_NE(&first.device(), &second.device());
  Client client = first.keygen();
  const EvaluationKeys keys = client.evaluation_keys({true});
  Client single = client.single();
  EXPECT_EQ(&single.context().device(), &first.device());
  if (first.device().info().kind == device::Kind::cuda) {
    try {
      second.evaluator(keys, {0.0});
      FAIL() << "memory of another stream";
    } catch (const StateError& e) {
      EXPECT_NE(std::string(e.what()).find("share one Device"), std::string::npos) << e.what();
    }
    return;
  }
  const Evaluator ev = second.evaluator(keys, {0.0});
  EXPECT_EQ(client.decrypt(ev.gate(Gate::xor_, client.encrypt(kLeft), client.encrypt(kRight))),
            kXor);
  EXPECT_EQ(client.decrypt(ev.pack(single.encrypt(kLeft, 4))), kLeft);
}

TEST_P(TfheTenants, NoDeviceIsRefused) {
  EXPECT_THROW(Context(test::tfhe_params("gadget"), std::shared_ptr<device::Device>()),
               ParameterError);
}

TEST_P(TfheTenants, ATenantCostsItsKeysAndNothingElse) {
  for (const char* set : {"gadget:r3", "padded"}) {
    SCOPED_TRACE(set);
    const Context context(test::tfhe_params(set), device_);
    auto& stream = context.stream();
    struct Tenant {
      EvaluationKeys keys;
      std::optional<Evaluator> ev;
    };
    const u32 limit = message_bound(context.params());
    const std::vector<Lut> luts{{Messages(limit, 1), 0}, {Messages(limit, 0), 0}};
    const auto new_tenant = [&] {
      Client client = context.keygen();
      Tenant tenant{client.evaluation_keys(), {}};
      tenant.ev = context.evaluator(tenant.keys, {0.0});
      const Ciphertext a = client.encrypt(kLeft), b = client.encrypt(kRight);
      EXPECT_EQ(client.decrypt(tenant.ev->gate(Gate::xor_, a, b)), kXor);
      if (context.params().spec().padded) {
        EXPECT_EQ(client.decrypt(tenant.ev->lut(a, luts, std::vector<u32>{0, 1, 1, 0})),
                  (Messages{1, 0, 0, 1}));
        EXPECT_EQ(client.decrypt(tenant.ev->mux(a, b, tenant.ev->not_(b))), (Messages{1, 0, 0, 1}));
      }
      return tenant;
    };
    const std::size_t nobody = stream.bytes_in_use();
    std::vector<Tenant> tenants;
    tenants.push_back(new_tenant());
    const u64 key_bytes = tenants[0].keys.bytes();
    const std::size_t shared = stream.bytes_in_use() - nobody - key_bytes;  // and rounding
    std::vector<std::size_t> in_use{stream.bytes_in_use()};
    for (int t = 1; t < 4; ++t) {
      tenants.push_back(new_tenant());
      EXPECT_EQ(tenants.back().keys.bytes(), key_bytes);
      in_use.push_back(stream.bytes_in_use());
      // The pool rounds a block up by a quarter at most; a second copy of what is shared would
      // show.
      EXPECT_GE(in_use[t] - in_use[t - 1], key_bytes);
    }
    EXPECT_GT(shared, 0u);
    for (int t = 3; t > 0; --t) {
      tenants[t].ev.reset();
      EXPECT_EQ(stream.bytes_in_use(), in_use[t]) << "an evaluator holds memory of its own";
      tenants.pop_back();
      EXPECT_EQ(stream.bytes_in_use(), in_use[t - 1]) << "more than its keys stays of a tenant";
    }
  }
}

TEST_P(TfheTenants, ThreadsShareTheCaches) {
  const Context context(test::tfhe_params("padded"), device_);
  constexpr int kThreads = 4;
  const u32 limit = message_bound(context.params());
  std::vector<Messages> found(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      Client client = context.keygen();
      const Evaluator ev = context.evaluator(client.evaluation_keys(), {0.0});
      for (u64 round = 0; round < 6; ++round) {
        // Tables that all threads ask for at about the same time, and one of its own.
        const std::vector<Lut> luts{{Messages(limit, round), 0}, {Messages(limit, u64(t)), 0}};
        const Ciphertext a = client.encrypt(kLeft), b = client.encrypt(kRight);
        const Ciphertext both = ev.gate(round % 2 ? Gate::xor_ : Gate::and_, a, b);
        for (u64 m : client.decrypt(ev.lut(both, luts, std::vector<u32>{0, 1, 0, 1})))
          found[t].push_back(m);
      }
    });
  for (auto& thread : threads) thread.join();
  for (int t = 0; t < kThreads; ++t) {
    Messages expected;
    for (u64 round = 0; round < 6; ++round)
      for (int i = 0; i < 4; ++i) expected.push_back(i % 2 ? u64(t) : round);
    EXPECT_EQ(found[t], expected) << "thread " << t;
  }
}

CRENEL_DEVICE_SUITE(TfheTenants);

}  // namespace
}  // namespace crenel::tfhe
