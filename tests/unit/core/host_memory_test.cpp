// What the host has left, read from trees of files that are written here; the words of refusals.
#include "core/host_memory.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/child.h"
#include "support/random.h"

namespace crenel::core {
namespace {

namespace fs = std::filesystem;

constexpr u64 kMiB = u64(1) << 20;

class HostMemoryTree : public testing::Test {
 protected:
  HostMemoryTree() {
    std::string name = (fs::temp_directory_path() / "crenel-memory-XXXXXX").string();
    root_ = mkdtemp(name.data());
  }
  ~HostMemoryTree() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    const fs::path file = root_ + path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void meminfo(u64 available, u64 swap = 0, const std::string& more = "") const {
    write("/proc/meminfo", cat("MemTotal: 999999999 kB\nMemAvailable:  ", available / 1024,
                               " kB\nSwapFree: ", swap / 1024, " kB\n", more));
  }
  void group(const std::string& folder, const std::string& limit, u64 used, u64 cache) const {
    const std::string at = "/sys/fs/cgroup" + folder;
    write(at + "/memory.max", limit + "\n");
    write(at + "/memory.current", cat(used, "\n"));
    write(at + "/memory.stat", cat("anon 1\ninactive_file ", cache / 2, "\nactive_file ",
                                   cache - cache / 2, "\nshmem 77777\n"));
  }
  u64 bytes() const { return host_memory(root_).bytes; }
  std::string limit() const { return host_memory(root_).limit; }

  std::string root_;
  test::Rng rng_ = test::test_rng();
};

TEST_F(HostMemoryTree, NothingStatedLimitsNothing) {
  EXPECT_EQ(bytes(), ~u64(0));
  EXPECT_EQ(limit(), "no limit");
}

TEST_F(HostMemoryTree, WhatTheKernelCallsAvailableAndSwap) {
  const u64 available = (rng_() % 100000 + 1) * 1024, swap = (rng_() % 1000 + 1) * 1024;
  meminfo(available, swap);
  EXPECT_EQ(bytes(), available + swap);
  EXPECT_EQ(limit(), "MemAvailable of /proc/meminfo");
}

TEST_F(HostMemoryTree, CommitLimitCountsOnlyWhereOvercommitIsForbidden) {
  meminfo(500 * kMiB, 0, "CommitLimit: 2048 kB\nCommitted_AS: 1024 kB\n");
  write("/proc/sys/vm/overcommit_memory", "0\n");
  EXPECT_EQ(bytes(), 500 * kMiB);
  write("/proc/sys/vm/overcommit_memory", "2\n");
  EXPECT_EQ(bytes(), 1024u * 1024);
  EXPECT_EQ(limit(), "CommitLimit of /proc/meminfo");
}

TEST_F(HostMemoryTree, TheTightestOfAllGroupsAboveAndTheirCacheCanGo) {
  meminfo(u64(1) << 40);
  write("/proc/self/cgroup", "0::/a/b/c\n");
  const u64 used = rng_() % kMiB, cache = used / 3;
  group("/a/b/c", "max", used, cache);
  group("/a/b", cat(300 * kMiB), used, cache);
  group("/a", cat(200 * kMiB), used, cache);
  EXPECT_EQ(bytes(), 200 * kMiB - (used - cache));
  EXPECT_EQ(limit(), "cgroup limit memory.max");
  group("/a/b", cat(100 * kMiB), used, cache);
  EXPECT_EQ(bytes(), 100 * kMiB - (used - cache));
  group("/a/b/c", "5", 1000, 0);  // over its limit
  EXPECT_EQ(bytes(), 0u);
}

TEST_F(HostMemoryTree, SwapOfAGroup) {
  meminfo(u64(1) << 40, 50 * kMiB);
  write("/proc/self/cgroup", "0::/a\n");
  group("/a", cat(100 * kMiB), 10 * kMiB, 0);
  EXPECT_EQ(bytes(), 90 * kMiB);  // no swap stated for the group
  write("/sys/fs/cgroup/a/memory.swap.current", cat(10 * kMiB));
  write("/sys/fs/cgroup/a/memory.swap.max", cat(30 * kMiB));
  EXPECT_EQ(bytes(), 110 * kMiB);
  write("/sys/fs/cgroup/a/memory.swap.max", "max\n");
  EXPECT_EQ(bytes(), 140 * kMiB);
}

TEST_F(HostMemoryTree, AContainerWhosePathIsTheHosts) {
  meminfo(u64(1) << 40);
  write("/proc/self/cgroup", "0::/docker/0123456789\n");
  group("", cat(64 * kMiB), kMiB, 0);
  EXPECT_EQ(bytes(), 63 * kMiB);
  write("/proc/self/cgroup", "0::/../../outside\n");
  EXPECT_EQ(bytes(), 63 * kMiB);
}

TEST_F(HostMemoryTree, VersionOneAndBothAtOnce) {
  meminfo(u64(1) << 40);
  write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/a/b\n0::/\n");
  const auto old = [&](const std::string& folder, u64 limit, u64 used, u64 cache) {
    const std::string at = "/sys/fs/cgroup/memory" + folder;
    write(at + "/memory.limit_in_bytes", cat(limit));
    write(at + "/memory.usage_in_bytes", cat(used));
    write(at + "/memory.stat", cat("inactive_file 1\ntotal_inactive_file ", cache, "\n"));
  };
  old("/a/b", u64(1) << 62, 7 * kMiB, 0);  // what version 1 calls no limit
  old("/a", 80 * kMiB, 30 * kMiB, 20 * kMiB);
  EXPECT_EQ(bytes(), 70 * kMiB);
  EXPECT_EQ(limit(), "cgroup limit memory.limit_in_bytes");
  group("", cat(60 * kMiB), 0, 0);
  EXPECT_EQ(bytes(), 60 * kMiB);
}

TEST_F(HostMemoryTree, FilesOfNonsenseLimitNothing) {
  write("/proc/meminfo", "MemAvailable: lots kB\n\n:::\nMemAvailable\n");
  write("/proc/self/cgroup", "::\n:\n\n0:\n0::relative\n9:memory:\n");
  group("", "many", 0, 0);
  EXPECT_EQ(bytes(), ~u64(0));
}

TEST(HostMemory, OfThisMachine) {
  const HostMemory left = host_memory();
  EXPECT_GT(left.bytes, 0u);
  EXPECT_FALSE(left.limit.empty());
}

TEST(HostMemory, AddressSpaceOfThisProcess) {
  EXPECT_EQ(test::in_child([] {
              const rlimit limit{u64(1) << 40, RLIM_INFINITY};
              if (setrlimit(RLIMIT_AS, &limit) != 0) return false;
              std::ifstream statm("/proc/self/statm");
              u64 pages = 0;
              statm >> pages;
              const rlimit tight{pages * static_cast<u64>(sysconf(_SC_PAGESIZE)) + 100 * kMiB,
                                 RLIM_INFINITY};
              if (setrlimit(RLIMIT_AS, &tight) != 0) return false;
              const HostMemory left = host_memory();
              if (left.bytes > 100 * kMiB || left.limit != "RLIMIT_AS (ulimit -v)") return false;
              ask_host({.what = "half of it", .bytes = left.bytes / 2});
              try {
                ask_host({.what = "too much", .bytes = 101 * kMiB});
              } catch (const OutOfMemoryError& e) {
                return e.field("limit") == left.limit && e.field("device") == "host";
              }
              return false;
            }),
            "");
}

TEST(OutOfMemory, IsADeviceErrorWithItsOwnCode) {
  try {
    throw out_of_memory({.what = "x", .bytes = 10}, 5, "the test", "cuda:7");
  } catch (const DeviceError& e) {
    EXPECT_EQ(e.code(), "OutOfMemoryError");
    EXPECT_EQ(e.field("needed"), "10");
    EXPECT_EQ(e.field("available"), "5");
    EXPECT_EQ(e.field("device"), "cuda:7");
    EXPECT_EQ(e.field("fits"), "");
  }
}

TEST(OutOfMemory, SaysTheSumWhatIsThereAndHowManyFit) {
  auto rng = test::test_rng();
  const u64 each = rng() % kMiB + 1, count = rng() % 1000 + 2, besides = rng() % (3 * kMiB);
  const u64 fitting = rng() % count;
  const u64 available = besides + fitting * each + each - 1;
  const auto e = out_of_memory({.what = "402 evaluation keys",
                                .bytes = besides + count * each,
                                .count = count,
                                .each = each,
                                .units = "keys",
                                .advice = "ask for fewer"},
                               available, "the test", "cuda:0");
  EXPECT_EQ(e.field("fits"), cat(fitting));
  EXPECT_EQ(std::string(e.what()),
            cat("402 evaluation keys: ", human_bytes(besides + count * each), ", cuda:0 has ",
                human_bytes(available), " available (the test): ", fitting,
                " of these keys fit; ask for fewer"));
  const auto none = out_of_memory({.bytes = count * each + besides, .count = count, .each = each},
                                  besides / 2, "", "");
  EXPECT_EQ(none.field("fits"), "0");
}

TEST(OutOfMemory, BytesForPeople) {
  EXPECT_EQ(human_bytes(0), "0 bytes");
  EXPECT_EQ(human_bytes(1023), "1023 bytes");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(u64(47) << 30), "47.0 GiB");
  EXPECT_EQ(human_bytes(~u64(0)), "16.0 EiB");
}

}  // namespace
}  // namespace crenel::core
