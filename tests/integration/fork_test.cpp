// Forked children of a process that has computed, with the objects that it made.
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "ckks/objects.h"
#include "support/child.h"
#include "support/ckks_world.h"
#include "support/tfhe_world.h"

namespace crenel::test {
namespace {

class Forks : public SchemeTest {
 protected:
  void SetUp() override {
    SchemeTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    if (device_->info().kind == device::Kind::cuda)
      GTEST_SKIP() << "a context of another processor does not survive a fork";
    made_.emplace(device_);
    x_ = random_values(rng_, made_->context.params().slots());
  }
  // Large enough for OpenMP's threads in every operation.
  struct Made {
    explicit Made(std::shared_ptr<device::Device> device)
        : context(ckks::Params::preset("leveled-n14-s40"), std::move(device)),
          client(context.keygen()),
          ev(context.evaluator(client.evaluation_keys())) {}
    ckks::Context context;
    ckks::Client client;
    ckks::Evaluator ev;
  };
  std::optional<Made> made_;
  Rng rng_ = test_rng();
  Values x_;

  bool round_trip() {
    const Values& x = x_;
    const auto a = made_->client.encrypt(x, 2u);
    const auto found = made_->client.decrypt(made_->ev.multiply(a, a));
    double error = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      error = std::max(error, std::abs(found[i] - x[i] * x[i]));
    return error < 0x1p-15;
  }
};
CRENEL_DEVICE_SUITE(Forks);

TEST_P(Forks, AChildComputesWithItsParentsObjects) {
  ASSERT_TRUE(round_trip());  // OpenMP's threads are there now
  EXPECT_EQ(in_child([&] { return round_trip(); }), "");
  EXPECT_EQ(in_child([&] { return in_child([&] { return round_trip(); }).empty(); }), "");
  EXPECT_TRUE(round_trip());
}

TEST_P(Forks, AChildOfAWorkingProcessComputesOrIsRefused) {
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop) round_trip();
  });
  for (int i = 0; i < (exhaustive() ? 20 : 3); ++i)
    EXPECT_EQ(in_child([&] {
                try {
                  return round_trip();
                } catch (const StateError& error) {
                  return error.field("found") == "a lock held across fork()";
                }
              }),
              "");
  stop = true;
  other.join();
  EXPECT_EQ(in_child([&] { return round_trip(); }), "");
}

TEST_P(Forks, StagedKeysThatAnotherThreadReadsAreRefusedInTheChild) {
  const auto keys = made_->client.evaluation_keys({{1, 2, 3}, false, false});
  const auto staged = keys.staged(keys.bytes() / 3 * 2).data()->staged;
  auto& stream = made_->context.stream();
  const auto ids = staged->ids();
  ASSERT_EQ(ids.size(), 3u);
  std::atomic<int> stage{0};
  std::thread holder([&] {
    const auto lease = staged->lease(stream, std::span(ids).first(2));
    stage = 1;
    while (stage != 2) std::this_thread::yield();
  });
  while (stage != 1) std::this_thread::yield();
  EXPECT_EQ(in_child([&] {
              try {
                staged->lease(stream, std::span(ids).last(1));
              } catch (const StateError& error) {
                return error.field("found") == "a lease held across fork()";
              }
              return false;
            }),
            "");
  stage = 2;
  holder.join();
  EXPECT_EQ(in_child([&] {
              staged->lease(stream, std::span(ids).last(1));
              return true;
            }),
            "");
}

TEST_P(Forks, AChildBootstrapsBits) {
  TfheWorld& world = tfhe_world(GetParam(), "gadget");
  const Messages bits(40, 1);
  const auto job = [&] {
    const auto a = world.client.encrypt(bits), b = world.client.encrypt(bits);
    return world.client.decrypt(world.ev.gate(tfhe::Gate::and_, a, b)) == bits;
  };
  ASSERT_TRUE(job());
  EXPECT_EQ(in_child(job), "");
}

// Another thread of the parent counts at the moment of nearly every fork.
TEST(ForkedShares, AForkedChildNeverWaitsForTheParentsThreads) {
  ckks::ShareLedger ledger;
  std::atomic<bool> stop{false};
  std::thread counting([&] {
    while (!stop) ledger.add({0, 0.0});
  });
  std::string outcome;
  for (int i = 0; i < 60 && outcome.empty(); ++i)
    outcome = in_child(
        [&] {
          try {
            return ledger.account().shares == 0;
          } catch (const StateError& error) {
            return error.field("found") == "a lock held across fork()";
          }
        },
        20);
  stop = true;
  counting.join();
  EXPECT_EQ(outcome, "");
}

}  // namespace
}  // namespace crenel::test
