// One TFHE context, its caches, keys and evaluators, from eight threads at once.
#include "crenel/tfhe/serialize.h"
#include "support/tfhe_world.h"
#include "support/together.h"

namespace crenel::tfhe {
namespace {

using test::kThreads;
using test::Messages;
using test::together;

class ThreadsTfhe : public test::DeviceTest {};
CRENEL_DEVICE_SUITE(ThreadsTfhe);

TEST_P(ThreadsTfhe, OneEvaluatorAndItsCaches) {
  const Context context(test::tfhe_params("padded"), device_);
  Client client = context.keygen();
  const Evaluator ev = context.evaluator(client.evaluation_keys());
  const u32 limit = message_bound(context.params());
  const Messages x{0, 1, 1, 0}, y{1, 1, 0, 0};
  std::vector<Messages> found(kThreads);
  together(kThreads, [&](u64 t) {
    for (u64 round = 0; round < 4; ++round) {
      // Tables that all threads ask for at about the same time, and one of its own.
      const std::vector<Lut> luts{{Messages(limit, round), 0}, {Messages(limit, t % limit), 0}};
      const Ciphertext a = client.encrypt(x), b = client.encrypt(y);
      const Ciphertext both = ev.gate(round % 2 ? Gate::xor_ : Gate::and_, a, b);
      for (u64 m : client.decrypt(ev.lut(both, luts, std::vector<u32>{0, 1, 0, 1})))
        found[t].push_back(m);
    }
  });
  for (u64 t = 0; t < kThreads; ++t) {
    Messages expected;
    for (u64 round = 0; round < 4; ++round)
      for (int i = 0; i < 4; ++i) expected.push_back(i % 2 ? t % limit : round);
    EXPECT_EQ(found[t], expected) << t;
  }
}

TEST_P(ThreadsTfhe, RecordingsAmongGatesOfOthers) {
  const Context context(test::tfhe_params("gadget"), device_);
  Client client = context.keygen();
  const Evaluator ev = context.evaluator(client.evaluation_keys());
  const Messages x{0, 1, 1, 0}, y{1, 1, 0, 0}, expected{1, 0, 1, 1};
  std::atomic<u64> wrong{0};
  together(kThreads, [&](u64 t) {
    for (int round = 0; round < 4; ++round) {
      const Ciphertext a = client.encrypt(x), b = client.encrypt(y);
      if (t % 2) {
        if (client.decrypt(ev.gate(Gate::nand, a, b)) != expected) ++wrong;
        continue;
      }
      std::optional<Ciphertext> out;
      const auto graph = context.stream().capture([&] {
        out.reset();
        out = ev.gate(Gate::nand, a, b);
      });
      for (int k = 0; k < 2; ++k) {
        graph->launch(context.stream());
        if (client.decrypt(*out) != expected) ++wrong;
      }
    }
  });
  EXPECT_EQ(wrong, 0u);
}

TEST_P(ThreadsTfhe, LoadersAndClients) {
  const Context context(test::tfhe_params("gadget"), device_);
  Client client = context.keygen();
  const EvaluationKeys keys = client.evaluation_keys();
  const std::vector<u8> bytes = to_bytes(context, keys);
  const Messages x{0, 1, 1, 0}, y{1, 1, 0, 0}, expected{0, 1, 0, 0};
  std::atomic<u64> wrong{0};
  together(kThreads, [&](u64) {
    const Evaluator ev = context.evaluator(evaluation_keys_from_bytes(context, bytes));
    if (client.decrypt(ev.gate(Gate::and_, client.encrypt(x), client.encrypt(y))) != expected)
      ++wrong;
  });
  EXPECT_EQ(wrong, 0u);
}

}  // namespace
}  // namespace crenel::tfhe
