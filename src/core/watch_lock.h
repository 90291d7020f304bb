// Locks that are held through long work, waited for with points.
#pragma once

#include <chrono>
#include <mutex>
#include <thread>

#include "crenel/core/fork_mutex.h"
#include "crenel/core/watch.h"

namespace crenel::watch {

/// Holds `mutex`. Who waits under a Scope can be stopped, which takes no lock.
inline std::unique_lock<ForkMutex> lock(ForkMutex& mutex) {
  if (!active()) return std::unique_lock(mutex);
  // Short waits are as short as those of a lock; after a millisecond of them it is a long one.
  for (int tries = 0; !mutex.try_lock(); ++tries) {
    if (mutex.abandoned()) return std::unique_lock(mutex);  // throws
    point();
    if (tries < 1000)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {mutex, std::adopt_lock};
}

}  // namespace crenel::watch
