// Pages for secrets: what the kernel was told about them, and what is left after their release.
#include "core/secret_pages.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "crenel/core/error.h"
#include "support/child.h"
#include "support/process_memory.h"
#include "support/random.h"

namespace crenel::core {
namespace {

using test::in_child;
using test::region_of;

std::vector<u8> random_bytes(std::size_t count) {
  auto rng = test::test_rng();
  std::vector<u8> bytes(count);
  for (u8& b : bytes) b = static_cast<u8>(rng());
  return bytes;
}

// Whether this machine lets the test lock what it asks for: root, or a limit that is high enough.
bool lockable(std::size_t bytes) { return secret_memory().lock_limit >= bytes || geteuid() == 0; }

constexpr std::size_t kSizes[] = {1,    32,   255,    256,     257,          4095,
                                  4096, 4097, 100000, 2 << 20, (5 << 20) + 3};

class SecretPages : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, SecretPages, testing::ValuesIn(kSizes),
                         testing::PrintToStringParamName());

TEST_P(SecretPages, AreLockedAndNotDumped) {
  const std::size_t bytes = GetParam();
  u8* const memory = static_cast<u8*>(allocate_secret(bytes));
  EXPECT_EQ(reinterpret_cast<u64>(memory) % 256, 0u);
  std::fill_n(memory, bytes, u8(1));
  for (const u8* at : {memory, memory + bytes - 1}) {
    const auto region = region_of(at);
    EXPECT_TRUE(region.flags.count("dd")) << "dumped";
    if (lockable(bytes)) {
      EXPECT_TRUE(region.flags.count("lo")) << "not locked";
    }
    EXPECT_FALSE(region.flags.count("wf"));
  }
  EXPECT_EQ(secret_memory().dumpable_bytes, 0u);
  deallocate_secret(memory);
}

TEST_P(SecretPages, EndAtAPageThatNobodyMayTouch) {
  const std::size_t bytes = GetParam();
  u8* const memory = static_cast<u8*>(allocate_secret(bytes));
  const auto region = region_of(memory);
  EXPECT_FALSE(region_of(reinterpret_cast<void*>(region.end)).readable);
  EXPECT_FALSE(region_of(reinterpret_cast<void*>(region.begin - 1)).readable);
  // A write behind what was asked for.
  if (bytes < (2 << 20)) {
    EXPECT_LT(region.end - reinterpret_cast<u64>(memory + bytes), 256u);
  }
  volatile u8* const behind = reinterpret_cast<u8*>(region.end);
  EXPECT_EQ(in_child([&] {
              signal(SIGSEGV, SIG_DFL);  // sanitizers catch it
              *behind = 1;
              return true;
            }),
            "signal " + std::to_string(SIGSEGV));
  deallocate_secret(memory);
}

// Of every size at once: the whole memory of the process is looked through, twice.
TEST(SecretMemory, IsWipedWhenGivenBack) {
  const auto bytes = random_bytes(test::Pattern::kBytes);
  const test::Pattern pattern(bytes);
  std::vector<u8*> all;
  std::vector<u64> begins;  // of the pattern: at both ends, which may be one
  for (const std::size_t size : kSizes) {
    u8* const memory = all.emplace_back(static_cast<u8*>(allocate_secret(size)));
    if (size < bytes.size()) continue;
    for (u8* const at : {memory, memory + size - bytes.size()}) {
      std::copy(bytes.begin(), bytes.end(), at);
      if (at == memory || at >= memory + bytes.size()) begins.push_back(reinterpret_cast<u64>(at));
    }
  }
  const auto before = test::find_in_memory(pattern);
  for (const u64 at : begins) EXPECT_EQ(std::count(before.begin(), before.end(), at), 1) << at;
  for (u8* const memory : all) deallocate_secret(memory);
  const auto after = test::find_in_memory(pattern);
  for (const u64 at : begins) EXPECT_EQ(std::count(after.begin(), after.end(), at), 0) << at;
}

TEST_P(SecretPages, NextOnesAreZero) {
  for (const u8 value : {1, 0}) {  // the second one may get the same pages, and sees zeros
    u8* const memory = static_cast<u8*>(allocate_secret(GetParam()));
    if (value == 0) {
      EXPECT_EQ(std::count(memory, memory + GetParam(), 0), std::ptrdiff_t(GetParam()));
    }
    std::fill_n(memory, GetParam(), value);
    deallocate_secret(memory);
  }
}

TEST(SecretMemory, CountsWhatIsThere) {
  trim_secrets();
  const SecretMemory before = secret_memory();
  void* const memory = allocate_secret(10000);
  const SecretMemory with = secret_memory();
  EXPECT_EQ(with.bytes, before.bytes + 12288);
  EXPECT_EQ(with.locked_bytes + with.unlocked_bytes, with.bytes + with.idle_bytes);
  deallocate_secret(memory);
  EXPECT_EQ(secret_memory().bytes, before.bytes);
  EXPECT_EQ(secret_memory().idle_bytes, before.idle_bytes + 12288);
  trim_secrets();
  EXPECT_EQ(secret_memory().idle_bytes, 0u);
}

TEST(SecretMemory, KeepsNoMoreIdleThanWasInUse) {
  trim_secrets();
  const u64 base = secret_memory().bytes;
  for (std::size_t bytes = 4096; bytes < (64 << 20); bytes *= 2)
    deallocate_secret(allocate_secret(bytes));
  EXPECT_LE(secret_memory().idle_bytes, base + (32 << 20));
  trim_secrets();
}

TEST(SecretMemory, SaysWhatCouldNotBeLocked) {
  EXPECT_EQ(in_child([] {
              trim_secrets();
              const rlimit none{0, 0};
              if (setrlimit(RLIMIT_MEMLOCK, &none) != 0) return false;
              // Who may lock without limit (root) gives that up first.
              if (geteuid() == 0 && setuid(65534) != 0) return false;
              u8* const memory = static_cast<u8*>(allocate_secret(8192));
              memory[8191] = 1;
              const SecretMemory now = secret_memory();
              return now.unlocked_bytes >= 8192 && now.lock_limit == 0 && now.dumpable_bytes == 0 &&
                     !region_of(memory).flags.count("lo") && region_of(memory).flags.count("dd");
            }),
            "");
}

TEST(SecretMemory, SurvivesForkOrIsWipedAsAsked) {
  u8* const kept = static_cast<u8*>(allocate_secret(64));
  u8* const wiped = static_cast<u8*>(allocate_secret(64, OnFork::wipe));
  std::fill_n(kept, 64, u8(7));
  std::fill_n(wiped, 64, u8(7));
  EXPECT_TRUE(region_of(wiped).flags.count("wf"));
  const bool locks = lockable(8192);
  EXPECT_EQ(in_child([&] {
              const auto region = region_of(kept);
              return std::count(kept, kept + 64, 7) == 64 &&
                     std::count(wiped, wiped + 64, 0) == 64 && region.flags.count("dd") == 1 &&
                     (!locks || region.flags.count("lo") == 1);
            }),
            "")
      << "contents, or the lock that a child has to renew";
  EXPECT_EQ(std::count(wiped, wiped + 64, 7), 64);
  deallocate_secret(kept);
  deallocate_secret(wiped);
}

TEST(SecretMemory, ChildrenAllocateWhileTheParentsThreadsDo) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      while (!stop) deallocate_secret(allocate_secret(5000));
    });
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(in_child([] {
                deallocate_secret(allocate_secret(5000));
                return true;
              }),
              "");
  stop = true;
  for (auto& thread : threads) thread.join();
}

TEST(SecretMemory, VectorsLeaveNothingWhenTheyGrow) {
  const auto bytes = random_bytes(32);
  const test::Pattern pattern(bytes);
  const auto before = test::find_in_memory(pattern).size();  // `bytes` itself
  {
    SecretVector<u8> secret(bytes.begin(), bytes.end());
    for (int i = 0; i < 20000; ++i) secret.push_back(0);
    EXPECT_EQ(test::find_in_memory(pattern).size(), before + 1);
  }
  EXPECT_EQ(test::find_in_memory(pattern).size(), before);
}

TEST(SecretMemory, RefusesWhatCannotBe) {
  EXPECT_THROW(allocate_secret(~std::size_t(0)), DeviceError);
  EXPECT_THROW(allocate_secret(std::size_t(1) << 60), DeviceError);
  deallocate_secret(nullptr);
  deallocate_secret(allocate_secret(0));
}

}  // namespace
}  // namespace crenel::core
