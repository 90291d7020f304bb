// Stopping and telling: what a Scope sees of the work of its thread, and what may leave from it.
#include "crenel/core/watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "core/watch_lock.h"
#include "core/watch_team.h"
#include "crenel/core/fork_mutex.h"
#include "support/random.h"

namespace crenel {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using Reports = std::vector<std::tuple<u64, u64, std::string>>;

struct Told : std::runtime_error {
  Told() : std::runtime_error("told to stop") {}
};

/// Points for so long, or until one throws.
void work(milliseconds duration) {
  for (const auto end = Clock::now() + duration; Clock::now() < end;) watch::point();
}

/// Long enough that a polled scope has been polled, however busy the machine is.
constexpr milliseconds kLong{20'000};

Watch::Options telling(Reports& reports) {
  return {.progress = [&](u64 done, u64 total, const char* what) {
    reports.emplace_back(done, total, what);
  }};
}

TEST(Watch, WithoutAScopePointsAndCountsDoNothing) {
  EXPECT_FALSE(watch::active());
  EXPECT_FALSE(watch::reported());
  const watch::Task task(3, "nothing");
  watch::point();
  watch::advance(5);
}

TEST(Watch, ATokenStopsTheWorkOfAnotherThread) {
  const CancelToken token;
  Clock::time_point cancelled;
  std::thread other([&, copy = token] {
    std::this_thread::sleep_for(milliseconds(
        std::uniform_int_distribution<>(0, 150)(*std::make_unique<test::Rng>(test::run_seed()))));
    cancelled = Clock::now();
    copy.cancel();
  });
  const Watch watch({.token = token});
  EXPECT_THROW(work(kLong), Cancelled);
  const auto heard = Clock::now();
  other.join();
  EXPECT_LT(heard - cancelled, milliseconds(500));
  EXPECT_TRUE(token.cancelled());
  EXPECT_THROW(watch::point(), Cancelled);  // from now on, too
}

TEST(Watch, WhatAPollThrowsLeavesAsItIs) {
  const Watch watch({.poll = [] { throw Told(); }});
  EXPECT_THROW(work(kLong), Told);
}

TEST(Watch, PollsAreFarApart) {
  int polls = 0;
  const Watch watch({.poll = [&] { ++polls; }});
  work(milliseconds(30));
  EXPECT_EQ(polls, 0);  // short work is not polled
  work(milliseconds(500));
  EXPECT_GE(polls, 1);
  EXPECT_LE(polls, 12);
}

TEST(Watch, OuterScopesArePolledAndStopInnerWork) {
  const CancelToken token;
  const Watch outer({.token = token});
  {
    const Watch inner({});
    std::thread([copy = token] { copy.cancel(); }).join();
    EXPECT_THROW(work(kLong), Cancelled);
  }
  EXPECT_THROW(watch::point(), Cancelled);
}

// A loop of operations, each with a scope of its own, that are too short to be polled.
TEST(Watch, AFlagOfAnOuterScopeStopsShortWork) {
  const CancelToken token;
  const Watch outer({.token = token});
  const auto operation = [] {
    const Watch inner({});
    watch::point();
  };
  operation();
  token.cancel();
  EXPECT_THROW(operation(), Cancelled);
}

TEST(Watch, EachThreadHasItsOwn) {
  const CancelToken token;
  token.cancel();
  const Watch watch({.token = token});
  std::thread([] {
    EXPECT_FALSE(watch::active());
    watch::point();
  }).join();
  EXPECT_THROW(watch::point(), Cancelled);
}

TEST(Watch, DestructorsThatRunWhileItStopsAreLeftAlone) {
  struct Cleaning {
    bool& done;
    explicit Cleaning(bool& d) : done(d) {}
    ~Cleaning() {
      work(milliseconds(150));  // would end the process
      done = true;
    }
  };
  const CancelToken token;
  const Watch watch({.token = token, .poll = [] { throw Told(); }});
  bool cleaned = false;
  EXPECT_THROW(
      {
        const Cleaning cleaning(cleaned);
        token.cancel();
        watch::point();
      },
      Cancelled);
  EXPECT_TRUE(cleaned);
}

TEST(Watch, AShieldHidesPoints) {
  const CancelToken token;
  token.cancel();
  const Watch watch({.token = token});
  {
    const watch::Shield shield;
    watch::point();
    EXPECT_FALSE(watch::active());
  }
  EXPECT_THROW(watch::point(), Cancelled);
}

TEST(Watch, ATaskIsToldFromNothingToAll) {
  Reports reports;
  const Watch watch(telling(reports));
  EXPECT_TRUE(watch::reported());
  {
    const watch::Task task(1'000'000, "counting");
    for (int i = 0; i < 1'000'000; ++i) watch::advance();
  }
  ASSERT_GE(reports.size(), 2u);
  EXPECT_EQ(reports.front(), (std::tuple{u64(0), u64(1'000'000), std::string("counting")}));
  EXPECT_EQ(reports.back(), (std::tuple{u64(1'000'000), u64(1'000'000), std::string("counting")}));
  EXPECT_TRUE(std::is_sorted(reports.begin(), reports.end()));
  EXPECT_EQ(std::adjacent_find(reports.begin(), reports.end()), reports.end());
}

TEST(Watch, ATaskInsideAnotherIsPartOfIt) {
  Reports reports;
  const Watch watch(telling(reports));
  {
    watch::Task outer(4, "outer");
    for (int i = 0; i < 2; ++i) {
      watch::Task inner(1, "inner");
      watch::advance();
      inner.finish();  // not the inner one's to say
    }
    outer.finish();
  }
  EXPECT_EQ(reports.front(), (std::tuple{u64(0), u64(4), std::string("outer")}));
  EXPECT_EQ(reports.back(), (std::tuple{u64(4), u64(4), std::string("outer")}));
  for (const auto& [done, total, what] : reports) EXPECT_EQ(what, "outer");
  watch::Task next(1, "next");
  EXPECT_EQ(std::get<2>(reports.back()), "next");
}

TEST(Watch, WhatIsToldMayStop) {
  const Watch watch({.progress = [](u64 done, u64, const char*) {
    if (done == 2) throw Told();
  }});
  watch::Task task(2, "two");
  watch::advance();
  EXPECT_THROW(watch::advance(), Told);
}

TEST(Watch, AnInnerScopeWithoutInterestTellsTheOuterOne) {
  Reports reports;
  const Watch outer(telling(reports));
  const Watch inner({});
  const watch::Task task(1, "one");
  watch::advance();
  EXPECT_EQ(reports.size(), 2u);
}

// The loop of cpu/parallel.h, on the threads of the test.
TEST(Watch, ATeamStopsAsOneAndTheCallerThrows) {
  constexpr int kThreads = 4;
  const CancelToken token;
  const Watch watch({.token = token});
  watch::Team team;
  std::atomic<u64> stopped_inside{0}, ran{0};
  const auto member = [&](int thread) {
    const watch::Member here(team);
    for (int i = 0; i < 50; ++i)
      team.run([&] {
        ++ran;
        if (thread == 0 && i == 1) token.cancel();
        try {
          work(kLong);  // the others are inside a task when the caller stops
        } catch (...) {
          ++stopped_inside;
          throw;
        }
      });
  };
  std::vector<std::thread> threads;
  for (int t = 1; t < kThreads; ++t) threads.emplace_back(member, t);
  token.cancel();
  member(0);
  for (auto& thread : threads) thread.join();
  EXPECT_THROW(team.rethrow(), Cancelled);
  EXPECT_LE(ran, u64(kThreads));
  EXPECT_LE(stopped_inside, ran);
}

TEST(Watch, WaitingForALockCanBeStopped) {
  ForkMutex mutex;
  std::optional<std::unique_lock<ForkMutex>> held(mutex);
  const CancelToken token;
  std::thread waiting([&] {
    const Watch watch({.token = token});
    EXPECT_THROW(static_cast<void>(watch::lock(mutex)), Cancelled);
  });
  std::this_thread::sleep_for(milliseconds(20));
  token.cancel();
  waiting.join();
  held.reset();
  const Watch watch({});
  const auto lock = watch::lock(mutex);  // nobody took it on the way
  EXPECT_TRUE(lock.owns_lock());
}

}  // namespace
}  // namespace crenel
