// What fork() leaves: who may use OpenMP's threads, and what becomes of locks.
#include "core/fork.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "crenel/core/error.h"
#include "crenel/core/fork_mutex.h"
#include "support/child.h"

namespace crenel {
namespace {

using test::in_child;

TEST(Fork, IsCounted) {
  const u64 here = core::forks();
  EXPECT_EQ(in_child([&] { return core::forks() == here + 1; }), "");
  EXPECT_EQ(in_child([&] { return in_child([&] { return core::forks() == here + 2; }).empty(); }),
            "");
  EXPECT_EQ(core::forks(), here);
}

TEST(Fork, TheThreadThatForkedHasNoTeamInTheChild) {
  EXPECT_TRUE(core::may_use_team());
  EXPECT_EQ(in_child([] { return !core::may_use_team(); }), "");
  EXPECT_TRUE(core::may_use_team());
}

TEST(Fork, ThreadsStartedInTheChildHaveOne) {
  EXPECT_EQ(in_child([] {
              bool may = false;
              std::thread([&] { may = core::may_use_team(); }).join();
              return may;
            }),
            "");
}

TEST(ForkMutex, ExcludesAndWakes) {
  ForkMutex mutex;
  u64 count = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 20000; ++i) {
        const std::lock_guard lock(mutex);
        ++count;
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(count, 80000u);
  const std::lock_guard lock(mutex);
  EXPECT_FALSE(mutex.try_lock());
  EXPECT_FALSE(mutex.abandoned());
}

TEST(ForkMutex, ALockOfAThreadThatIsNotHereIsAnErrorEachTime) {
  ForkMutex mutex;
  std::atomic<int> stage{0};
  std::thread holder([&] {
    const std::lock_guard lock(mutex);
    stage = 1;
    while (stage != 2) std::this_thread::yield();
  });
  while (stage != 1) std::this_thread::yield();
  const std::string outcome = in_child([&] {
    int refused = 0;
    for (int i = 0; i < 2; ++i) {
      try {
        mutex.lock();
      } catch (const StateError& error) {
        if (error.field("found") == "a lock held across fork()") ++refused;
      }
    }
    return refused == 2 && mutex.abandoned() && !mutex.try_lock();
  });
  stage = 2;
  holder.join();
  EXPECT_EQ(outcome, "");
  EXPECT_NO_THROW(std::lock_guard{mutex});
}

TEST(ForkMutex, AFreeOneServesTheChild) {
  ForkMutex mutex;
  {
    const std::lock_guard lock(mutex);
  }
  EXPECT_EQ(in_child([&] {
              {
                const std::lock_guard lock(mutex);
              }
              return !mutex.abandoned() && mutex.try_lock();
            }),
            "");
}

}  // namespace
}  // namespace crenel
