// Loops over independent tasks on the threads of core/team.h, where there is enough to do.
#pragma once

#include "core/team.h"
#include "crenel/core/watch.h"

namespace crenel::backend::cpu {

inline u32 thread_count() { return core::team_size(); }

/// Words below which waking the other threads (microseconds) costs more than it saves.
inline constexpr u64 kSerialWords = u64(1) << 14;

/// task(i) for i in [0, count), in any order; `words` is the total number of words touched, `grain`
/// how many neighbouring tasks one thread takes at a time (they share cached data). Tasks throw
/// nothing but what their points do (core/watch_team.h); there is one between any two.
template <class Task>
void parallel_for(u64 count, u64 words, const Task& task, u64 grain = 1) {
  if (count > 1 && words >= kSerialWords && core::may_share())
    return core::loop_shared(count, task, grain);
  for (u64 i = 0; i < count; ++i) {
    watch::point();
    task(i);
  }
}

/// task(i, worker): workers are numbered from 0, below thread_count(), and do one task at a time,
/// so that each can have memory of its own.
template <class Task>
void parallel_for_workers(u64 count, u64 words, const Task& task, u64 grain = 1) {
  const bool alone = core::in_team();
  parallel_for(count, words, [&](u64 i) { task(i, alone ? u32(0) : core::team_number()); }, grain);
}

}  // namespace crenel::backend::cpu
