// How much of the host's memory could be taken, asked before it is taken: the kernel grants what it
// does not have, and ends whoever touches it.
#pragma once

#include <string>

#include "crenel/core/types.h"

namespace crenel {

/// What the host could still give.
struct HostMemory {
  u64 bytes = 0;  ///< that could be taken now; 2^64 - 1: the system states no limit
  std::string
      limit;  ///< who says so: "MemAvailable of /proc/meminfo", "RLIMIT_AS (ulimit -v)", ...
};

/// The least of: MemAvailable and free swap of /proc/meminfo (where overcommit is forbidden also
/// what CommitLimit leaves); of the memory control group of this process and all above it, version
/// 2 or 1, the limit less what is used and cannot be dropped; of RLIMIT_AS, what is not mapped.
/// What a system does not state limits nothing. `root` stands before /proc and /sys, for tests.
HostMemory host_memory(const std::string& root = "");

/// OutOfMemoryError naming `what` where the host has less than `bytes`. Nothing is compared below
/// 64 MiB: asking costs about 0.2 ms.
void expect_host_memory(u64 bytes, const char* what);

}  // namespace crenel
