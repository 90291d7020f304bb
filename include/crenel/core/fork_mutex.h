// A mutex that says so when its holder did not come along through fork().
#pragma once

#include <atomic>

#include "crenel/core/types.h"

namespace crenel {

/// Works as std::mutex does. In a forked child, a lock that another thread of the parent held then
/// would never be released, and what it guards may be half changed: lock() throws StateError there,
/// again and again, instead of waiting for ever.
class ForkMutex {
 public:
  ForkMutex() = default;
  ForkMutex(const ForkMutex&) = delete;
  ForkMutex& operator=(const ForkMutex&) = delete;

  /// As std::mutex's; lock() throws StateError as said above, and try_lock() is false there.
  void lock();
  bool try_lock() noexcept;
  void unlock() noexcept;
  /// Whether lock() throws here: for functions that must not throw.
  bool abandoned() const noexcept;

 private:
  /// 0: free; else one more than the forks that lie before the holder's process.
  std::atomic<u32> holder_{0};
};

}  // namespace crenel
