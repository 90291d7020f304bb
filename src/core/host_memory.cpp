#include "core/host_memory.h"

#if defined(__EMSCRIPTEN__)
#include <malloc.h>
#include <unistd.h>
#else
#include <sys/resource.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <sstream>

namespace crenel::core {
namespace {

constexpr u64 kNoLimit = std::numeric_limits<u64>::max();

u64 less(u64 a, u64 b) { return a > b ? a - b : 0; }
u64 plus(u64 a, u64 b) { return a > kNoLimit - b ? kNoLimit : a + b; }

// "max" is no number: no limit.
std::optional<u64> number_in(const std::string& path) {
  std::ifstream file(path);
  u64 value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

// "Name:  123 kB" and "name 123", by name.
std::map<std::string, u64> table_in(const std::string& path) {
  std::map<std::string, u64> table;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name, unit;
    u64 value = 0;
    if (!(words >> name >> value)) continue;
    if (!name.empty() && name.back() == ':') name.pop_back();
    words >> unit;
    table[name] = unit == "kB" ? value * 1024 : value;
  }
  return table;
}

u64 entry(const std::map<std::string, u64>& table, const char* name) {
  const auto it = table.find(name);
  return it == table.end() ? 0 : it->second;
}

class Least {
 public:
  void add(u64 bytes, const std::string& limit) {
    if (bytes < least_.bytes) least_ = {bytes, limit};
  }
  HostMemory result() const { return least_; }

 private:
  HostMemory least_{kNoLimit, "no limit"};
};

void add_system(Least& least, const std::string& proc, u64& free_swap) {
  const auto info = table_in(proc + "/meminfo");
  free_swap = entry(info, "SwapFree");
  if (info.count("MemAvailable"))
    least.add(plus(entry(info, "MemAvailable"), free_swap), "MemAvailable of /proc/meminfo");
  constexpr u64 kForbidden = 2;
  if (number_in(proc + "/sys/vm/overcommit_memory") == kForbidden && info.count("CommitLimit"))
    least.add(less(entry(info, "CommitLimit"), entry(info, "Committed_AS")),
              "CommitLimit of /proc/meminfo");
}

// f(folder) for the group's folder below `mount` and every folder above it. In a container the path
// may be one of the host's, which is not there: the mount itself then is the container's group.
template <class F>
void for_each_group(const std::string& mount, std::string path, F f) {
  if (path.find("..") != std::string::npos) path.clear();
  while (path.size() > 1 && path[0] == '/') {
    f(mount + path);
    path.resize(path.rfind('/'));
  }
  f(mount);
}

void add_group(Least& least, const std::string& folder, u64 free_swap) {
  const auto limit = number_in(folder + "/memory.max");
  const auto used = number_in(folder + "/memory.current");
  if (!limit || !used) return;
  const auto parts = table_in(folder + "/memory.stat");
  const u64 cache = entry(parts, "inactive_file") + entry(parts, "active_file");
  // No such file: no swap for this group.
  u64 swap = 0;
  if (const auto swapped = number_in(folder + "/memory.swap.current")) {
    const auto most = number_in(folder + "/memory.swap.max");
    swap = std::min(free_swap, most ? less(*most, *swapped) : kNoLimit);
  }
  least.add(plus(less(*limit, less(*used, cache)), swap), "cgroup limit memory.max");
}

void add_old_group(Least& least, const std::string& folder, u64 free_swap) {
  const auto limit = number_in(folder + "/memory.limit_in_bytes");
  const auto used = number_in(folder + "/memory.usage_in_bytes");
  if (!limit || !used) return;
  const auto parts = table_in(folder + "/memory.stat");
  const u64 cache = entry(parts, "total_inactive_file") + entry(parts, "total_active_file");
  least.add(plus(less(*limit, less(*used, cache)), free_swap),
            "cgroup limit memory.limit_in_bytes");
}

void add_groups(Least& least, const std::string& root, u64 free_swap) {
  const std::string mount = root + "/sys/fs/cgroup";
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // number:controllers:path
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = cat(",", line.substr(first + 1, second - first - 1), ",");
    const std::string path = line.substr(second + 1);
    if (controllers == ",,")
      for_each_group(mount, path,
                     [&](const std::string& folder) { add_group(least, folder, free_swap); });
    else if (controllers.find(",memory,") != std::string::npos)
      for_each_group(mount + "/memory", path,
                     [&](const std::string& folder) { add_old_group(least, folder, free_swap); });
  }
}

#if defined(__EMSCRIPTEN__)
// What the module may still grow by, and what its allocator has free.
void add_address_space(Least& least, const std::string&) {
  const auto used = reinterpret_cast<std::uintptr_t>(sbrk(0));
  const auto idle = static_cast<std::size_t>(mallinfo().fordblks);
  least.add(plus(less(CRENEL_WASM_MEMORY_BYTES, used), idle),
            "the memory that the module may have");
}
#else
void add_address_space(Least& least, const std::string& proc) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  if (const auto pages = number_in(proc + "/self/statm"))
    least.add(less(limit.rlim_cur, *pages * static_cast<u64>(sysconf(_SC_PAGESIZE))),
              "RLIMIT_AS (ulimit -v)");
}
#endif

}  // namespace

std::string human_bytes(u64 bytes) {
  if (bytes < 1024) return cat(bytes, " bytes");
  double value = static_cast<double>(bytes) / 1024;
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  for (; value >= 1024 && unit < 5; ++unit) value /= 1024;
  char text[32];
  const int length = std::snprintf(text, sizeof(text), "%.1f ", value);
  return std::string(text, static_cast<std::size_t>(std::max(0, length))).append(units[unit]);
}

OutOfMemoryError out_of_memory(const MemoryRequest& request, u64 available,
                               const std::string& limit, const std::string& device) {
  std::string message = cat(request.what, ": ", human_bytes(request.bytes), ", ", device, " has ",
                            human_bytes(available), " available (", limit, ")");
  std::vector<ErrorField> fields{
      {"needed", request.bytes}, {"available", available}, {"device", device}, {"limit", limit}};
  if (request.count != 0) {
    // What is asked for besides comes first.
    const u64 besides = less(request.bytes, request.count * request.each);
    const u64 fits = std::min(less(available, besides) / request.each, request.count);
    message += cat(": ", fits, " of these ", request.units, " fit");
    fields.push_back({"fits", fits});
  }
  if (!request.advice.empty()) message += "; " + request.advice;
  return OutOfMemoryError(message, std::move(fields));
}

OutOfMemoryError out_of_host_memory(const MemoryRequest& request) {
  const HostMemory left = host_memory();
  return out_of_memory(request, left.bytes, left.limit, "host");
}

void ask_host(const MemoryRequest& request) {
  const HostMemory left = host_memory();
  if (request.bytes > left.bytes) throw out_of_memory(request, left.bytes, left.limit, "host");
}

}  // namespace crenel::core

namespace crenel {

HostMemory host_memory(const std::string& root) {
  core::Least least;
  u64 free_swap = 0;
  core::add_system(least, root + "/proc", free_swap);
  core::add_groups(least, root, free_swap);
  core::add_address_space(least, root + "/proc");
  return least.result();
}

void expect_host_memory(u64 bytes, const char* what) {
  core::expect_host_room(bytes, [&] { return core::MemoryRequest{.what = what}; });
}

}  // namespace crenel
