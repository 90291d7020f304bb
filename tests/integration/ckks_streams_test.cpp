// Several streams, and memory that stays where it is once warm.
#include <thread>

#include "ckks/objects.h"
#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using test::Complex;
using test::Values;

class CkksStreams : public test::SchemeTest {};

Ciphertext work(const Evaluator& ev, const Ciphertext& a, const Ciphertext& b) {
  const i64 steps[] = {0, 1, 2};
  const Ciphertext product = ev.multiply_rescale(a, b);
  return ev.rotate_sum(ev.add(product, ev.adjust_level(ev.rotate(a, 3), product.level())), steps);
}

TEST_P(CkksStreams, EveryStreamGivesTheSameBits) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Ciphertext a = w.client.encrypt(test::random_values(rng, w.slots()));
  const Ciphertext b = w.client.encrypt(test::random_values(rng, w.slots()));
  const auto expected = w.client.decrypt(work(w.ev, a, b));
  std::vector<Evaluator> evaluators;
  std::vector<Ciphertext> results;
  w.context.stream().synchronize();
  for (int k = 0; k < 4; ++k) {
    evaluators.push_back(w.ev.on(w.context.device().make_stream()));
    EXPECT_NE(&evaluators.back().stream(), &w.ev.stream());
    for (int round = 0; round < 3; ++round) results.push_back(work(evaluators.back(), a, b));
  }
  for (auto& ev : evaluators) w.context.stream().wait_for(ev.stream());
  for (const auto& r : results) EXPECT_EQ(w.client.decrypt(r), expected);
  for (const auto& r : results) EXPECT_NE(&r.data().poly.stream(), &w.context.stream());
}

TEST_P(CkksStreams, ThreadsWithAStreamEachShareKeys) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Ciphertext a = w.client.encrypt(test::random_values(rng, w.slots()));
  const Ciphertext b = w.client.encrypt(test::random_values(rng, w.slots()));
  const auto expected = w.client.decrypt(work(w.ev, a, b));
  w.context.stream().synchronize();
  std::vector<std::optional<Ciphertext>> results(4);
  std::vector<std::thread> threads;
  for (auto& result : results)
    threads.emplace_back([&] {
      const Evaluator ev = w.ev.on(w.context.device().make_stream());
      for (int round = 0; round < 3; ++round) result = work(ev, a, b);
      ev.stream().synchronize();
    });
  for (auto& t : threads) t.join();
  for (const auto& r : results) EXPECT_EQ(w.client.decrypt(*r), expected);
}

TEST_P(CkksStreams, StreamsOfOtherDevicesAreRefused) {
  auto& w = world("s40");
  EXPECT_THROW(w.ev.on(nullptr), ParameterError);
  if (GetParam() == "ref") return;
  const auto other = device::open("ref");
  const auto e = test::expect_error<StateError>([&] { w.ev.on(other->make_stream()); });
  EXPECT_EQ(e.field("found"), "ref");
}

TEST_P(CkksStreams, MemoryIsSteadyOnceWarm) {
  auto& w = world("toy-boot40");
  auto rng = test::test_rng();
  const Ciphertext a = w.client.encrypt(test::random_values(rng, w.slots()), 12u);
  const Ciphertext b = w.client.encrypt(test::random_values(rng, w.slots()), 12u);
  const Evaluator ev = w.ev.on(w.context.device().make_stream());
  w.context.stream().synchronize();
  const auto round = [&] {
    const Ciphertext r = work(ev, a, b);
    ev.polynomial(r, std::vector<double>{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8});
  };
  EXPECT_EQ(ev.stream().bytes_in_use(), 0u);
  round();
  EXPECT_EQ(ev.stream().bytes_in_use(), 0u) << "every temporary was given back";
  const auto peak = ev.stream().peak_bytes();
  EXPECT_GT(peak, a.bytes());
  for (int k = 0; k < (exhaustive() ? 20 : 2); ++k) round();
  EXPECT_EQ(ev.stream().peak_bytes(), peak) << "later rounds need what the first needed";
  EXPECT_EQ(ev.stream().bytes_in_use(), 0u);
  ev.stream().reset_peak();
  EXPECT_EQ(ev.stream().peak_bytes(), 0u);
}

TEST_P(CkksStreams, ResultsOutliveTheirStreamHandle) {
  auto& w = world("s40");
  const Values x(w.slots(), Complex(0.5, 0.5));
  const Ciphertext a = w.client.encrypt(x);
  w.context.stream().synchronize();
  std::optional<Ciphertext> r;
  {
    const Evaluator ev = w.ev.on(w.context.device().make_stream());
    r = ev.add(a, a);
    ev.stream().synchronize();
  }
  EXPECT_NEAR(w.client.decrypt(*r)[0].real(), 1.0, 1e-6);
  r.reset();
}

CRENEL_FAST_DEVICE_SUITE(CkksStreams);

}  // namespace
}  // namespace crenel::ckks
