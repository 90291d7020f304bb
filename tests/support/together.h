// Threads that start at the same moment; the first exception of one of them is the caller's.
#pragma once

#include <atomic>
#include <exception>
#include <latch>
#include <mutex>
#include <thread>
#include <vector>

#include "crenel/core/types.h"

namespace crenel::test {

/// Of a test that needs no other number.
inline constexpr u64 kThreads = 8;

/// job(t) for t in [0, threads), each in a thread.
template <class Job>
void together(u64 threads, const Job& job) {
  std::latch start(static_cast<std::ptrdiff_t>(threads));
  std::mutex mutex;
  std::exception_ptr failure;
  std::vector<std::thread> running;
  for (u64 t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      start.arrive_and_wait();
      try {
        job(t);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    });
  for (auto& thread : running) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace crenel::test
