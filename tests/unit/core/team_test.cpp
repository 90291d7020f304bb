// Loops on the threads that there are: of OpenMP where it is, and of the helpers that the
// WebAssembly module has, here as threads of this process.
#include "core/team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csetjmp>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/helpers.h"
#include "crenel/core/error.h"
#include "support/random.h"

namespace crenel {
namespace {

using core::Helpers;

/// Helpers that work until it goes.
class Team {
 public:
  explicit Team(u32 count) {
    for (u32 k = 0; k < count; ++k)
      threads_.emplace_back([this] {
        // A thread that is thrown out of its work comes back here, past no destructor.
        std::jmp_buf out;        // NOLINT(modernize-avoid-c-arrays)
        if (setjmp(out) == 0) {  // NOLINT(cert-err52-cpp)
          way_out = &out;
          helpers.help();
        } else {
          helpers.lost();
        }
      });
  }
  ~Team() {
    helpers.dismiss();
    for (auto& thread : threads_) thread.join();
  }
  /// Waits until all take part.
  void admit() {
    while (helpers.members() < threads_.size() + 1) {
      std::this_thread::yield();
      helpers.admit();
    }
  }
  /// task(i) for i in [0, count).
  template <class Task>
  void run(u64 count, u64 grain, const Task& task) {
    helpers.run(
        [](const void* loop, u64 first, u64 end) {
          for (u64 i = first; i < end; ++i) (*static_cast<const Task*>(loop))(i);
        },
        &task, count, grain);
  }

  Helpers helpers;
  static inline thread_local std::jmp_buf* way_out = nullptr;

 private:
  std::vector<std::thread> threads_;
};

/// How often each task was done.
class Done {
 public:
  explicit Done(u64 count) : times_(std::make_unique<std::atomic<int>[]>(count)), count_(count) {}
  void operator()(u64 i) const { times_[i].fetch_add(1, std::memory_order_relaxed); }
  bool each_once() const {
    for (u64 i = 0; i < count_; ++i)
      if (times_[i].load() != 1) return false;
    return true;
  }

 private:
  std::unique_ptr<std::atomic<int>[]> times_;
  u64 count_;
};

TEST(Helpers, DoEveryTaskOnceWithNumbersOfTheirOwn) {
  auto rng = test::test_rng();
  for (u32 count : {0u, 1u, 3u}) {
    Team team(count);
    team.admit();
    ASSERT_EQ(team.helpers.numbers(), count + 1);
    for (int turn = 0; turn < 300; ++turn) {
      const u64 tasks = rng() % 2000, grain = 1 + rng() % 50;
      const Done done(tasks);
      std::vector<u64> of_each(count + 1);  // plain: a number is one thread's alone
      std::atomic<bool> inside{true};
      team.run(tasks, grain, [&](u64 i) {
        done(i);
        ++of_each.at(Helpers::number());
        if (!Helpers::inside()) inside = false;
      });
      EXPECT_TRUE(done.each_once()) << tasks << " tasks, grain " << grain;
      u64 sum = 0;
      for (const u64 n : of_each) sum += n;
      EXPECT_EQ(sum, tasks);
      EXPECT_TRUE(inside);
      EXPECT_FALSE(Helpers::inside());
    }
  }
}

TEST(Helpers, TakePartInALoopThatWaitsForThem) {
  Team team(2);
  team.admit();
  for (int turn = 0; turn < 20; ++turn) {
    std::atomic<u32> met{0};
    team.run(3, 1, [&](u64) {
      ++met;
      while (met.load() < 3) std::this_thread::yield();
    });
    EXPECT_EQ(met.load(), 3u);
  }
}

TEST(Helpers, WhomNobodyAdmittedTakeNoPart) {
  Team team(2);
  EXPECT_EQ(team.helpers.members(), 1u);
  for (int turn = 0; turn < 50; ++turn) {
    const Done done(500);
    std::atomic<bool> alone{true};
    team.run(500, 1, [&](u64 i) {
      done(i);
      if (Helpers::number() != 0) alone = false;
    });
    EXPECT_TRUE(done.each_once());
    EXPECT_TRUE(alone);
  }
  team.admit();
  EXPECT_EQ(team.helpers.members(), 3u);
}

TEST(Helpers, OneThatIsLostFailsItsLoopAndNoOther) {
  Team team(2);
  team.admit();
  std::atomic<u32> met{0};
  const auto lost_once = [&] {
    team.run(3, 1, [&](u64) {
      ++met;
      while (met.load() < 3) std::this_thread::yield();
      if (Helpers::number() == 1) std::longjmp(*Team::way_out, 1);  // NOLINT(cert-err52-cpp)
    });
  };
  try {
    lost_once();
    ADD_FAILURE() << "a loop that lost a task said nothing";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("ended within a loop"), std::string::npos);
  }
  EXPECT_EQ(team.helpers.members(), 2u);
  EXPECT_EQ(team.helpers.numbers(), 3u);
  for (int turn = 0; turn < 50; ++turn) {
    const Done done(500);
    team.run(500, 3, done);
    EXPECT_TRUE(done.each_once());
  }
}

TEST(Team, LoopsDoEveryTaskOnce) {
  auto rng = test::test_rng();
  EXPECT_FALSE(core::in_team());
  EXPECT_EQ(core::team_number(), 0u);
  for (int turn = 0; turn < 100; ++turn) {
    const u64 tasks = rng() % 3000, grain = 1 + rng() % 20;
    const Done parts(tasks), stops(tasks), alone(tasks), shared(tasks);
    std::atomic<bool> numbered{true};
    core::loop_in_parts(tasks, parts);
    core::loop_that_stops(true, tasks, stops, grain);
    core::loop_that_stops(false, tasks, alone, grain);
    if (core::may_share())
      core::loop_shared(
          tasks,
          [&](u64 i) {
            shared(i);
            if (core::team_number() >= core::team_size()) numbered = false;
          },
          grain);
    else
      for (u64 i = 0; i < tasks; ++i) shared(i);
    EXPECT_TRUE(parts.each_once() && stops.each_once() && alone.each_once() && shared.each_once())
        << tasks << " tasks, grain " << grain;
    EXPECT_TRUE(numbered);
  }
}

TEST(Team, WhatATaskThrowsLeavesAndStopsTheOthers) {
  for (const bool shared : {false, true}) {
    std::atomic<u64> done{0};
    const auto loop = [&] {
      core::loop_that_stops(shared, 100'000, [&](u64 i) {
        ++done;
        if (i == 7) throw ParameterError("task 7");
        if (i > 7) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
    };
    EXPECT_THROW(loop(), ParameterError);
    EXPECT_LT(done.load(), 100'000u);
  }
}

TEST(Team, ALoopWithinALoopStaysInItsThread) {
  if (core::team_size() == 1) GTEST_SKIP() << "one thread";
  std::atomic<bool> stayed{true};
  core::loop_that_stops(true, 8, [&](u64) {
    if (core::may_share()) stayed = false;
    const auto here = std::this_thread::get_id();
    core::loop_in_parts(100, [&](u64) {
      if (std::this_thread::get_id() != here) stayed = false;
    });
  });
  EXPECT_TRUE(stayed);
}

}  // namespace
}  // namespace crenel
