// Loops over independent tasks on the threads of OpenMP; plain loops without it, and in the thread
// that a fork left over (core/fork.h).
#pragma once

#include "core/fork.h"
#include "core/watch_team.h"
#include "crenel/core/types.h"

#if defined(_OPENMP)
#include <omp.h>
#endif

namespace crenel::backend::cpu {

inline u32 thread_count() {
#if defined(_OPENMP)
  return core::may_use_team() ? static_cast<u32>(omp_get_max_threads()) : 1;
#else
  return 1;
#endif
}

/// Words below which waking the other threads (microseconds) costs more than it saves.
inline constexpr u64 kSerialWords = u64(1) << 14;

/// task(i) for i in [0, count), in any order; `words` is the total number of words touched, `grain`
/// how many neighbouring tasks one thread takes at a time (they share cached data). Tasks throw
/// nothing but what their points do (core/watch_team.h); there is one between any two.
template <class Task>
void parallel_for(u64 count, u64 words, const Task& task, u64 grain = 1) {
#if defined(_OPENMP)
  if (count > 1 && words >= kSerialWords && !omp_in_parallel() && core::may_use_team()) {
    const auto end = static_cast<i64>(count);
    const auto chunk = static_cast<i64>(grain);
    if (!watch::active()) {
#pragma omp parallel for schedule(dynamic, chunk)
      for (i64 i = 0; i < end; ++i) task(static_cast<u64>(i));
      return;
    }
    watch::Team team;
#pragma omp parallel
    {
      const watch::Member member(team);
#pragma omp for schedule(dynamic, chunk)
      for (i64 i = 0; i < end; ++i) team.run([&] { task(static_cast<u64>(i)); });
    }
    team.rethrow();
    return;
  }
#endif
  (void)words, (void)grain;
  for (u64 i = 0; i < count; ++i) {
    watch::point();
    task(i);
  }
}

/// task(i, worker): workers are numbered from 0, below thread_count(), and do one task at a time,
/// so that each can have memory of its own.
template <class Task>
void parallel_for_workers(u64 count, u64 words, const Task& task, u64 grain = 1) {
#if defined(_OPENMP)
  if (!omp_in_parallel()) {
    parallel_for(
        count, words, [&](u64 i) { task(i, static_cast<u32>(omp_get_thread_num())); }, grain);
    return;
  }
#endif
  parallel_for(count, words, [&](u64 i) { task(i, u32(0)); }, grain);
}

}  // namespace crenel::backend::cpu
