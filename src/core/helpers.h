// A team of threads without OpenMP: one thread runs loops, helpers that somebody started take part.
// What the WebAssembly module has in place of OpenMP's runtime, which its compiler lacks.
#pragma once

#include <algorithm>
#include <atomic>
#include <limits>

#include "crenel/core/error.h"
#include "crenel/core/types.h"

namespace crenel::core {

/// Whoever calls run() is the team's first member; it alone does, one loop at a time.
class Helpers {
 public:
  /// Does the tasks [first, end) of `loop`; throws nothing.
  using Range = void (*)(const void* loop, u64 first, u64 end);

  /// Members that may take part in a loop: the one that runs it, and helpers that were admitted.
  u32 members() const noexcept {
    return 1 + admitted_.load(std::memory_order_relaxed) - lost_.load(std::memory_order_relaxed);
  }
  /// Above every member's number.
  u32 numbers() const noexcept { return 1 + admitted_.load(std::memory_order_relaxed); }
  /// Of this thread: 0 outside of help().
  static u32 number() noexcept { return own().number; }
  /// Whether this thread is within a loop, which then starts no other.
  static bool inside() noexcept { return own().inside; }

  /// From now on whoever has entered help() by now takes part. Between loops, on their thread.
  void admit() noexcept { admitted_.store(entered_.load(std::memory_order_acquire)); }

  /// range over [0, count), `grain` tasks at a time to whoever is free; returns once all are done.
  /// Throws DeviceError where a helper was lost in a task: what it did is not known.
  void run(Range range, const void* loop, u64 count, u64 grain) {
    range_ = range, loop_ = loop, count_ = count, grain_ = std::max<u64>(grain, 1);
    next_.store(0, std::memory_order_relaxed);
    // Helpers that come too late for the last loop may be counted for a moment: no plain store.
    gate_.fetch_sub(kClosed, std::memory_order_release);
    epoch_.fetch_add(1, std::memory_order_release);
    wake(epoch_);
    work();
    gate_.fetch_or(kClosed, std::memory_order_relaxed);
    for (u32 inside; (inside = gate_.load(std::memory_order_acquire)) != kClosed;)
      wait_while(gate_, inside);
    if (broken_.exchange(false))
      throw DeviceError("a helper thread ended within a loop, whose result is lost",
                        {{"found", members()}, {"expected", members() + 1}});
  }

  /// A helper's work, until dismiss(): to be called once a thread.
  void help() noexcept {
    u32 seen = epoch_.load(std::memory_order_acquire);
    own().number = entered_.fetch_add(1, std::memory_order_acq_rel) + 1;
    while (!dismissed_.load(std::memory_order_acquire)) {
      wait_while(epoch_, seen);
      seen = epoch_.load(std::memory_order_acquire);
      if (own().number > admitted_.load(std::memory_order_relaxed)) continue;
      if ((gate_.fetch_add(1, std::memory_order_acquire) & kClosed) == 0) work();
      leave();
    }
  }
  /// Every help() returns; between loops.
  void dismiss() noexcept {
    dismissed_.store(true, std::memory_order_release);
    epoch_.fetch_add(1, std::memory_order_release);
    wake(epoch_);
  }
  /// By a helper that left help() by no return: the loop that it was in fails, later ones do
  /// without it.
  void lost() noexcept {
    const u32 number = own().number;
    if (number != 0 && number <= admitted_.load()) lost_.fetch_add(1, std::memory_order_relaxed);
    if (!own().inside) return;
    own().inside = false;
    broken_.store(true);
    leave();
  }

 private:
  struct Own {
    u32 number = 0;
    bool inside = false;
  };
  static Own& own() noexcept {
    thread_local constinit Own own;
    return own;
  }

  void work() noexcept {
    own().inside = true;
    for (u64 first; (first = next_.fetch_add(grain_, std::memory_order_relaxed)) < count_;)
      range_(loop_, first, first + std::min(grain_, count_ - first));
    own().inside = false;
  }
  void leave() noexcept {
    if (gate_.fetch_sub(1, std::memory_order_release) == (kClosed | 1)) wake(gate_);
  }

  // Loops follow each other within microseconds, which is what it takes to sleep and wake.
  static constexpr int kSpins = 2000;
  static void wait_while(std::atomic<u32>& word, u32 value) noexcept {
    for (int k = 0; k < kSpins; ++k)
      if (word.load(std::memory_order_relaxed) != value) return;
#if defined(__wasm__)
    // libc++ of emscripten would poll.
    while (word.load(std::memory_order_relaxed) == value)
      __builtin_wasm_memory_atomic_wait32(reinterpret_cast<int*>(&word), static_cast<int>(value),
                                          -1);
#else
    word.wait(value, std::memory_order_relaxed);
#endif
  }
  static void wake(std::atomic<u32>& word) noexcept {
#if defined(__wasm__)
    __builtin_wasm_memory_atomic_notify(reinterpret_cast<int*>(&word),
                                        std::numeric_limits<u32>::max());
#else
    word.notify_all();
#endif
  }

  static constexpr u32 kClosed = u32(1) << 31;

  Range range_ = nullptr;  ///< these four: written while the gate is closed and nobody is inside
  const void* loop_ = nullptr;
  u64 count_ = 0, grain_ = 1;
  std::atomic<u64> next_{0};  ///< first task that nobody has
  /// Helpers inside, and whether no more may enter.
  alignas(64) std::atomic<u32> gate_{kClosed};
  alignas(64) std::atomic<u32> epoch_{0};  ///< counted up for those who wait for a loop
  std::atomic<u32> entered_{0}, admitted_{0}, lost_{0};
  std::atomic<bool> broken_{false}, dismissed_{false};
};

}  // namespace crenel::core
