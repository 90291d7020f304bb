#include "core/secret_pages.h"

#if !defined(__EMSCRIPTEN__)
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "core/host_memory.h"
#include "crenel/core/error.h"

namespace crenel::core {

void secure_zero(void* data, std::size_t bytes) noexcept {
  if (bytes == 0) return;  // an empty vector's data() may be null
  std::memset(data, 0, bytes);
  // The compiler must assume that this reads the memory, so the store above is not dead.
  asm volatile("" : : "r"(data) : "memory");
}

namespace {

constexpr std::size_t kHugePage = std::size_t(2) << 20;

// [guard][pages, start .. start + bytes)[guard]
struct Mapping {
  void* base = nullptr;
  std::size_t length = 0;
  char* start = nullptr;
  std::size_t bytes = 0;
  OnFork on_fork = OnFork::keep;
  bool locked = false;
  bool dumpable = false;
};

std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

// All of this process. What a page holds is known here and not in the page: a fork may wipe it.
class Pages {
 public:
  // Never destroyed: objects that live until the process ends give back what they have.
  static Pages& instance() {
    static Pages& pages = *new Pages;
    return pages;
  }

  void* allocate(std::size_t bytes, OnFork on_fork) {
    if (bytes > ~std::size_t(0) / 2) throw no_memory(bytes);
    const std::size_t taken = secret_capacity(bytes), wanted = round_up(taken, page_);
    const std::lock_guard lock(mutex_);
    Mapping mapping;
    // A little too large does as well: operations on neighbouring levels then share pages.
    const auto found = idle_.lower_bound({on_fork, wanted});
    if (found != idle_.end() && found->first.first == on_fork &&
        found->first.second <= wanted / 4 * 5) {
      mapping = found->second;
      idle_.erase(found);
      idle_bytes_ -= mapping.bytes;
    } else {
      expect_room(wanted);
      mapping = map(wanted, on_fork, bytes);
    }
    // Flush with the guard page behind; huge ones start on a huge page.
    char* data = mapping.start;
    if (mapping.bytes < kHugePage) data += mapping.bytes - taken;
    try {
      live_.emplace(data, mapping);
    } catch (...) {
      unmap(mapping);
      throw;
    }
    live_bytes_ += mapping.bytes;
    peak_bytes_ = std::max(peak_bytes_, live_bytes_);
    return data;
  }

  void deallocate(void* memory, bool wiped) noexcept {
    if (memory == nullptr) return;
    const std::lock_guard lock(mutex_);
    const auto found = live_.find(memory);
    const Mapping mapping = found->second;
    if (!wiped) {
      const std::size_t ahead =
          static_cast<std::size_t>(static_cast<char*>(memory) - mapping.start);
      secure_zero(memory, mapping.bytes - ahead);
    }
    live_.erase(found);
    live_bytes_ -= mapping.bytes;
    // As much as was in use at a time is kept, so that what is done again finds its pages warm.
    if (idle_bytes_ + mapping.bytes <= std::max(peak_bytes_, kAlwaysKept)) {
      bool kept = true;
      try {
        idle_.emplace(std::pair(mapping.on_fork, mapping.bytes), mapping);
      } catch (...) {  // no memory for the entry
        kept = false;
      }
      if (kept) {
        idle_bytes_ += mapping.bytes;
        return;
      }
    }
    unmap(mapping);
  }

  void trim() noexcept {
    const std::lock_guard lock(mutex_);
    drop_idle();
    peak_bytes_ = live_bytes_;
  }

  SecretMemory report() {
    SecretMemory report;
    const std::lock_guard lock(mutex_);
    const auto count = [&](const Mapping& m) {
      (m.locked ? report.locked_bytes : report.unlocked_bytes) += m.bytes;
      if (m.dumpable) report.dumpable_bytes += m.bytes;
    };
    for (const auto& [data, mapping] : live_) count(mapping);
    for (const auto& [key, mapping] : idle_) count(mapping);
    report.bytes = live_bytes_;
    report.idle_bytes = idle_bytes_;
    report.lock_limit = lock_limit();
    return report;
  }

 private:
  static constexpr std::size_t kAlwaysKept = std::size_t(1) << 20;

#if defined(__EMSCRIPTEN__)
  Pages() = default;
#else
  Pages() {
    // A child gets the table at rest, and locks its copies of the pages: locks are not inherited.
    pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                   [] {
                     instance().lock_again();
                     instance().mutex_.unlock();
                   });
  }
#endif

  static OutOfMemoryError no_memory(std::size_t bytes) {
    return out_of_host_memory({.what = "secrets in locked pages", .bytes = bytes});
  }

  void expect_room(std::size_t wanted) {
    const auto ask = [&] {
      expect_host_room(wanted, [] { return MemoryRequest{.what = "secrets in locked pages"}; });
    };
    try {
      ask();
    } catch (const OutOfMemoryError&) {
      if (idle_.empty()) throw;
      drop_idle();
      ask();
    }
  }

#if defined(__EMSCRIPTEN__)

  // WebAssembly has one memory, of which no page can be protected, locked or left out of dumps: it
  // is counted as such.
  static u64 lock_limit() { return 0; }
  Mapping map(std::size_t wanted, OnFork on_fork, std::size_t asked) {
    Mapping m;
    m.base = std::aligned_alloc(page_, wanted);
    if (m.base == nullptr) throw no_memory(asked);
    m.start = static_cast<char*>(m.base);
    m.length = m.bytes = wanted;
    m.on_fork = on_fork;
    m.dumpable = true;
    return m;
  }
  void unmap(const Mapping& mapping) noexcept { std::free(mapping.base); }

#else

  static u64 lock_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
      return limit.rlim_cur;
    return ~u64(0);
  }

  Mapping map(std::size_t wanted, OnFork on_fork, std::size_t asked) {
    const bool huge = wanted >= kHugePage;
    Mapping m;
    m.length = wanted + 2 * page_ + (huge ? kHugePage : 0);
    m.base = mmap(nullptr, m.length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m.base == MAP_FAILED) throw no_memory(asked);
    const auto first = reinterpret_cast<std::uintptr_t>(m.base) + page_;
    m.start = static_cast<char*>(m.base) + (round_up(first, huge ? kHugePage : page_) -
                                            reinterpret_cast<std::uintptr_t>(m.base));
    m.bytes = wanted;
    m.on_fork = on_fork;
    if (mprotect(m.start, m.bytes, PROT_READ | PROT_WRITE) != 0) {
      munmap(m.base, m.length);
      throw no_memory(asked);
    }
#if defined(__linux__)
    m.dumpable = madvise(m.start, m.bytes, MADV_DONTDUMP) != 0;
    if (huge) madvise(m.start, m.bytes, MADV_HUGEPAGE);
    if (on_fork == OnFork::wipe) madvise(m.start, m.bytes, MADV_WIPEONFORK);
#else
    m.dumpable = true;
#endif
    m.locked = mlock(m.start, m.bytes) == 0;
    if (!m.locked && !idle_.empty()) {  // idle pages hold nothing that needs the lock
      drop_idle();
      m.locked = mlock(m.start, m.bytes) == 0;
    }
    return m;
  }

  void unmap(const Mapping& mapping) noexcept { munmap(mapping.base, mapping.length); }

#endif

  void drop_idle() noexcept {
    for (const auto& [key, mapping] : idle_) unmap(mapping);
    idle_.clear();
    idle_bytes_ = 0;
  }

#if !defined(__EMSCRIPTEN__)
  // As pages are touched: a lock that touched them all would copy them all in every child.
  void lock_again() noexcept {
    const auto again = [](Mapping& m) {
#if defined(__linux__)
      m.locked = m.locked && mlock2(m.start, m.bytes, MLOCK_ONFAULT) == 0;
#else
      m.locked = false;
#endif
    };
    for (auto& [data, mapping] : live_) again(mapping);
    for (auto& [key, mapping] : idle_) again(mapping);
  }
  const std::size_t page_ = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
#else
  // Of the allocator's making: WebAssembly's own are of 64 KiB, more than most secrets.
  static constexpr std::size_t page_ = 4096;
#endif

  std::mutex mutex_;
  std::map<void*, Mapping> live_;
  std::multimap<std::pair<OnFork, std::size_t>, Mapping> idle_;
  std::size_t live_bytes_ = 0, idle_bytes_ = 0, peak_bytes_ = 0;
};

}  // namespace

void* allocate_secret(std::size_t bytes, OnFork on_fork) {
  return Pages::instance().allocate(bytes, on_fork);
}
void deallocate_secret(void* memory, bool wiped) noexcept {
  Pages::instance().deallocate(memory, wiped);
}
void trim_secrets() noexcept { Pages::instance().trim(); }

}  // namespace crenel::core

namespace crenel {

SecretMemory secret_memory() { return core::Pages::instance().report(); }

}  // namespace crenel
