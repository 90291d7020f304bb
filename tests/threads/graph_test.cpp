// One recording and many threads: every replay gives the results of its own inputs and keys.
#include "support/boot_world.h"
#include "support/together.h"

namespace crenel::ckks {
namespace {

using test::kThreads;
using test::Values;

class ThreadsGraph : public test::SchemeTest {
 protected:
  u64 rounds() const { return exhaustive() ? 100 : 10; }
};
CRENEL_FAST_DEVICE_SUITE(ThreadsGraph);

std::vector<Ciphertext> circuit(const Evaluator& ev, std::span<const Ciphertext> in) {
  std::vector<Ciphertext> out;
  out.push_back(ev.rotate(ev.multiply_rescale(in[0], in[1]), 1));
  out.push_back(ev.add(in[0], in[1]));
  return out;
}

struct Job {
  std::vector<Ciphertext> in;
  std::vector<std::vector<u32>> expected;
};

Job job_of(Client& client, const Evaluator& ev, test::Rng& rng) {
  Job job;
  for (int k = 0; k < 2; ++k)
    job.in.push_back(client.encrypt(test::random_values(rng, client.context().params().slots())));
  for (const Ciphertext& c : circuit(ev, job.in)) job.expected.push_back(test::bits(c));
  return job;
}

// Wrong results of `rounds` replays by every thread.
template <class Replay>
u64 wrong_results(u64 rounds, const std::vector<Job>& jobs, const Replay& replay) {
  std::atomic<u64> wrong{0};
  test::together(jobs.size(), [&](u64 t) {
    for (u64 round = 0; round < rounds; ++round) {
      const auto& out = replay(t, jobs[t].in);
      for (std::size_t i = 0; i < out.size(); ++i)
        if (test::bits(out[i]) != jobs[t].expected[i]) ++wrong;
    }
  });
  return wrong;
}

TEST_P(ThreadsGraph, ReplaysOfOneRecordingDoNotMix) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  std::vector<Job> jobs;
  for (u64 t = 0; t < kThreads; ++t) jobs.push_back(job_of(w.client, w.ev, rng));
  Graph graph(w.ev, jobs[0].in, [&](std::span<const Ciphertext> in) { return circuit(w.ev, in); });
  EXPECT_EQ(wrong_results(rounds(), jobs,
                          [&](u64, const auto& in) -> decltype(auto) { return graph.replay(in); }),
            0u);
}

TEST_P(ThreadsGraph, ReplaysWithTheKeysOfManyClientsDoNotMix) {
  const Context context(test::world_params("s40"), device_);
  auto rng = test::test_rng();
  std::vector<Client> clients;
  std::vector<Evaluator> evs;
  std::vector<Job> jobs;
  for (u64 t = 0; t < kThreads; ++t) {
    clients.push_back(context.keygen());
    const Evaluator ev = context.evaluator(clients.back().evaluation_keys({{1}, false, true}));
    // Half of them on streams of their own.
    evs.push_back(t % 2 ? ev.on(context.device().make_stream()) : ev);
    jobs.push_back(job_of(clients.back(), ev, rng));
  }
  context.stream().synchronize();
  Graph graph(evs[0], jobs[0].in, Graph::KeyedFunction(circuit));
  EXPECT_EQ(wrong_results(rounds(), jobs,
                          [&](u64 t, const auto& in) { return graph.replay(evs[t], in); }),
            0u);
}

// Others compute on the stream that is recorded, and record on it themselves.
TEST_P(ThreadsGraph, RecordingsAmongOperationsOfOthers) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  std::vector<Job> jobs;
  for (u64 t = 0; t < kThreads; ++t) jobs.push_back(job_of(w.client, w.ev, rng));
  std::atomic<u64> wrong{0};
  test::together(kThreads, [&](u64 t) {
    const auto check = [&](const std::vector<Ciphertext>& out) {
      for (std::size_t i = 0; i < out.size(); ++i)
        if (test::bits(out[i]) != jobs[t].expected[i]) ++wrong;
    };
    for (int round = 0; round < 3; ++round) {
      if (t % 2 == 0) {
        for (int k = 0; k < 4; ++k) check(circuit(w.ev, jobs[t].in));
        continue;
      }
      Graph graph(w.ev, jobs[0].in,
                  [&](std::span<const Ciphertext> in) { return circuit(w.ev, in); });
      for (int k = 0; k < 3; ++k) check(graph.replay(jobs[t].in));
    }
  });
  EXPECT_EQ(wrong, 0u);
}

// The recorded child would read the keys and inputs of whoever replays it meanwhile.
TEST_P(ThreadsGraph, AReplayInsideARecordingIsRefused) {
  auto& w = world("s40");
  std::vector<Ciphertext> in;
  for (int k = 0; k < 2; ++k) in.push_back(w.client.encrypt(Values(4, 0.5)));
  const Graph::Function plain = [&](std::span<const Ciphertext> x) { return circuit(w.ev, x); };
  Graph inner(w.ev, in, plain), keyed(w.ev, in, Graph::KeyedFunction(circuit));
  test::expect_error<StateError>(
      [&] { Graph(w.ev, in, [&](std::span<const Ciphertext> x) { return inner.replay(x); }); });
  test::expect_error<StateError>([&] {
    Graph(w.ev, in, [&](std::span<const Ciphertext> x) { return keyed.replay(w.ev, x); });
  });
  EXPECT_EQ(test::bits(inner.replay(in)[0]), test::bits(circuit(w.ev, in)[0]));
  EXPECT_EQ(test::bits(keyed.replay(w.ev, in)[0]), test::bits(circuit(w.ev, in)[0]));
}

}  // namespace
}  // namespace crenel::ckks
