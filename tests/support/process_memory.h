// The memory of this process as the kernel sees it: which flags a page has, where bytes occur.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "crenel/core/types.h"

namespace crenel::test {

struct Region {
  u64 begin = 0, end = 0;
  bool readable = false;
  std::string name;
  std::set<std::string> flags;  ///< VmFlags: "lo" locked, "dd" not dumped, "wf" wiped on fork

  bool has(u64 address) const { return begin <= address && address < end; }
};

inline std::vector<Region> regions() {
  std::vector<Region> found;
  std::ifstream smaps("/proc/self/smaps");
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first == "VmFlags:") {
      for (std::string flag; words >> flag;) found.back().flags.insert(flag);
    } else if (first.find('-') != std::string::npos && first.back() != ':') {
      Region region;
      std::string mode, offset, device, inode;
      words >> mode >> offset >> device >> inode >> region.name;
      region.begin = std::stoull(first, nullptr, 16);
      region.end = std::stoull(first.substr(first.find('-') + 1), nullptr, 16);
      region.readable = mode[0] == 'r';
      found.push_back(std::move(region));
    }
  }
  return found;
}

/// The region of an address; a default one when there is none.
inline Region region_of(const void* memory) {
  for (const Region& region : regions())
    if (region.has(reinterpret_cast<u64>(memory))) return region;
  return {};
}

/// Bytes to look for, kept so that this object itself is no match.
class Pattern {
 public:
  static constexpr std::size_t kBytes = 32;
  explicit Pattern(std::span<const u8> bytes) {
    for (std::size_t i = 0; i < kBytes; ++i) masked_[i] = static_cast<u8>(bytes[i] ^ kMask);
  }
  /// Offsets in `bytes` where the pattern begins.
  std::vector<std::size_t> in(std::span<const u8> bytes) const {
    std::vector<std::size_t> found;
    const u8 first = masked_[0] ^ kMask;
    for (std::size_t at = 0; at + kBytes <= bytes.size(); ++at) {
      const void* next = std::memchr(bytes.data() + at, first, bytes.size() - kBytes + 1 - at);
      if (next == nullptr) break;
      at = static_cast<std::size_t>(static_cast<const u8*>(next) - bytes.data());
      std::size_t same = 0;
      while (same < kBytes && static_cast<u8>(bytes[at + same] ^ kMask) == masked_[same]) ++same;
      if (same == kBytes) found.push_back(at);
    }
    return found;
  }

 private:
  static constexpr u8 kMask = 0x5a;
  std::array<u8, kBytes> masked_;
};

/// Every place in this process's memory where the pattern occurs.
inline std::vector<u64> find_in_memory(const Pattern& pattern) {
  constexpr std::size_t kPiece = std::size_t(1) << 20;
  // Read through the kernel: some pages must not be touched from here.
  u8* const piece = static_cast<u8*>(
      mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  std::vector<u64> found;
  for (const Region& region : regions()) {
    if (!region.readable || region.name.rfind("[v", 0) == 0) continue;
    if (region.end - region.begin > u64(4) << 30) continue;  // shadow memory of sanitizers
    for (u64 at = region.begin; at < region.end; at += kPiece - Pattern::kBytes) {
      const std::size_t wanted = std::min<u64>(kPiece, region.end - at);
      const ssize_t got = pread(memory, piece, wanted, static_cast<off_t>(at));
      if (got <= 0) break;
      for (const std::size_t offset : pattern.in({piece, static_cast<std::size_t>(got)})) {
        const u64 address = at + offset, own = reinterpret_cast<u64>(piece);
        if (address + Pattern::kBytes > own && address < own + kPiece) continue;
        if (found.empty() || found.back() < address) found.push_back(address);
      }
    }
  }
  close(memory);
  munmap(piece, kPiece);
  return found;
}

}  // namespace crenel::test
