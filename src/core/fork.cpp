#include "core/fork.h"

#if !defined(__EMSCRIPTEN__)
#include <pthread.h>
#include <unistd.h>
#endif

#include "crenel/core/error.h"
#include "crenel/core/fork_mutex.h"

namespace crenel {

#if defined(__EMSCRIPTEN__)

// WebAssembly has no processes that fork.
namespace core {
u64 forks() noexcept { return 0; }
bool may_use_team() noexcept { return true; }
}  // namespace core

namespace {
u32 own_mark() noexcept { return 1; }
}  // namespace

#else

namespace {

std::atomic<u64> fork_count{0};
thread_local bool came_through_fork = false;

// The handler runs in the one thread that the child has.
void in_child() {
  fork_count.fetch_add(1, std::memory_order_release);
  came_through_fork = true;
}

const pid_t first_process = getpid();
// While the library is loaded, so that no fork comes before it.
const bool registered = pthread_atfork(nullptr, nullptr, in_child) == 0;

u32 own_mark() noexcept { return static_cast<u32>(core::forks()) + 1; }

}  // namespace

namespace core {

u64 forks() noexcept {
  // Without the handler (no memory for it), the process id tells processes apart.
  if (!registered) return static_cast<u64>(getpid());
  return fork_count.load(std::memory_order_acquire);
}

bool may_use_team() noexcept {
  return !came_through_fork && (registered || getpid() == first_process);
}

}  // namespace core

#endif

bool ForkMutex::try_lock() noexcept {
  u32 free = 0;
  return holder_.compare_exchange_strong(free, own_mark(), std::memory_order_acquire,
                                         std::memory_order_relaxed);
}

bool ForkMutex::abandoned() const noexcept {
  const u32 holder = holder_.load(std::memory_order_relaxed);
  return holder != 0 && holder != own_mark();
}

void ForkMutex::lock() {
  while (!try_lock()) {
    const u32 holder = holder_.load(std::memory_order_relaxed);
    if (holder == 0) continue;
    if (holder != own_mark())
      throw StateError(
          "another thread was using this object when the process forked, and is not here to "
          "finish: "
          "make the object anew in the child, fork while no thread computes, or use spawn",
          {{"found", "a lock held across fork()"}, {"expected", "an object at rest"}});
    holder_.wait(holder, std::memory_order_relaxed);
  }
}

void ForkMutex::unlock() noexcept {
  holder_.store(0, std::memory_order_release);
  holder_.notify_one();
}

}  // namespace crenel
