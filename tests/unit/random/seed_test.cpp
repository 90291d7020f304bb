// Secret randomness across fork(), and memory that is wiped whatever happens.
#include "random/seed.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <vector>

namespace crenel::random {
namespace {

// What the source derives next in a child process.
Seed derived_in_child(SecretSource& source) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe");
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork");
  if (child == 0) {
    const Seed seed = source.derive_seed();
    const bool written =
        write(ends[1], seed.data(), seed.size()) == static_cast<ssize_t>(seed.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  Seed seed{};
  EXPECT_EQ(read(ends[0], seed.data(), seed.size()), static_cast<ssize_t>(seed.size()));
  close(ends[0]);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return seed;
}

TEST(ReviewSeeds, ForkedProcessesDoNotShareRandomness) {
  SecretSource source = SecretSource::from_os();
  source.next(Purpose::error);
  const Seed first = derived_in_child(source), second = derived_in_child(source);
  const Seed here = source.derive_seed();  // the same serial number in all three
  EXPECT_NE(first, here);
  EXPECT_NE(second, here);
  EXPECT_NE(first, second);
}

TEST(ReviewSeeds, TheParentKeepsItsSeed) {
  const Seed seed = seed_from_os();
  SecretSource forked(seed), other(seed);
  derived_in_child(forked);
  EXPECT_EQ(forked.derive_seed(), other.derive_seed());
}

#if defined(SYS_fork)
// A child that was made without fork()'s handlers, as by the bare system call, is told by the page.
TEST(ReviewSeeds, AWipedSeedIsRenewedWithoutTheCountOfForks) {
  SecretSource source = SecretSource::from_os();
  const Seed here = source.seed();
  const pid_t child = static_cast<pid_t>(syscall(SYS_fork));
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Seed there = source.seed();
    _exit(there != here && there != Seed{} ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(source.seed(), here);
}
#endif

/// Found under UndefinedBehaviorSanitizer, which fails this on memset of a null pointer.
TEST(ReviewSeeds, NothingIsWipedToo) {
  random::secure_zero(nullptr, 0);
  std::vector<u64> empty;
  const random::WipeOnExit wipe(empty);
}

TEST(ReviewSeeds, WipedWhenAnExceptionPasses) {
  std::vector<u32> secret{1, 2, 3};
  try {
    const WipeOnExit wipe(secret);
    throw std::runtime_error("out of memory, say");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(secret, std::vector<u32>(3, 0));
}

}  // namespace
}  // namespace crenel::random
