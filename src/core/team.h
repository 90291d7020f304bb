// Loops over independent tasks on the threads that there are: OpenMP's, those of core/helpers.h
// where the WebAssembly module has some, or the calling one. Nowhere else does the library name
// OpenMP.
#pragma once

#include <optional>

#include "core/fork.h"
#include "core/watch_team.h"
#include "crenel/core/types.h"

#if defined(_OPENMP)
#include <omp.h>
#elif defined(CRENEL_WASM_THREADS)
#include "core/helpers.h"
#endif

namespace crenel::core {

#if defined(CRENEL_WASM_THREADS) && !defined(_OPENMP)
/// Of the module, whose JavaScript starts them.
inline Helpers& helpers() {
  static constinit Helpers all;
  return all;
}
#endif

/// Above the numbers of all threads that a loop of this thread may have.
inline u32 team_size() {
#if defined(_OPENMP)
  return may_use_team() ? static_cast<u32>(omp_get_max_threads()) : 1;
#elif defined(CRENEL_WASM_THREADS)
  return helpers().numbers();
#else
  return 1;
#endif
}

/// Of this thread, within a loop.
inline u32 team_number() {
#if defined(_OPENMP)
  return static_cast<u32>(omp_get_thread_num());
#elif defined(CRENEL_WASM_THREADS)
  return Helpers::number();
#else
  return 0;
#endif
}

/// Whether this thread is within a loop that several share: it starts no other such.
inline bool in_team() {
#if defined(_OPENMP)
  return omp_in_parallel();
#elif defined(CRENEL_WASM_THREADS)
  return Helpers::inside();
#else
  return false;
#endif
}

/// Whether this thread may share a loop with others.
inline bool may_share() {
#if defined(_OPENMP)
  return !in_team() && may_use_team();
#elif defined(CRENEL_WASM_THREADS)
  return !in_team() && helpers().members() > 1;
#else
  return false;
#endif
}

/// task(i) for i in [0, count), in equal parts: for many short tasks, which throw nothing and have
/// no points.
template <class Task>
void loop_in_parts(u64 count, const Task& task) {
#if defined(_OPENMP)
#pragma omp parallel for schedule(static) if (may_use_team())
  for (u64 i = 0; i < count; ++i) task(i);
#else
#if defined(CRENEL_WASM_THREADS)
  if (const u32 members = helpers().members(); may_share()) {
    const auto range = [](const void* loop, u64 first, u64 end) {
      for (u64 i = first; i < end; ++i) (*static_cast<const Task*>(loop))(i);
    };
    return helpers().run(range, &task, count, (count + members - 1) / members);
  }
#endif
  for (u64 i = 0; i < count; ++i) task(i);
#endif
}

/// task(i) for i in [0, count), each a point; what the first to throw throws, stops the others and
/// leaves from here. `shared`: on the team where there is one, `grain` neighbours at a time.
template <class Task>
void loop_that_stops(bool shared, u64 count, const Task& task, u64 grain = 1) {
  watch::Team team;
#if defined(_OPENMP)
  const auto end = static_cast<i64>(count);
  const auto chunk = static_cast<i64>(grain);
#pragma omp parallel if (shared && may_use_team())
  {
    const watch::Member member(team);
#pragma omp for schedule(dynamic, chunk)
    for (i64 i = 0; i < end; ++i) team.run([&] { task(static_cast<u64>(i)); });
  }
#else
#if defined(CRENEL_WASM_THREADS)
  if (shared && may_share()) {
    struct Loop {
      watch::Team& team;
      const Task& task;
      const bool watched = watch::active();
    } const loop{team, task};
    const auto range = [](const void* given, u64 first, u64 end) {
      const auto& loop = *static_cast<const Loop*>(given);
      std::optional<watch::Member> member;  // its points read the clock: a call of JavaScript
      if (loop.watched) member.emplace(loop.team);
      for (u64 i = first; i < end; ++i) loop.team.run([&] { loop.task(i); });
    };
    helpers().run(range, &loop, count, grain);
    return team.rethrow();
  }
#endif
  static_cast<void>(shared), static_cast<void>(grain);
  for (u64 i = 0; i < count; ++i) team.run([&] { task(i); });
#endif
  team.rethrow();
}

/// task(i) for i in [0, count) on the team, `grain` neighbours at a time. Tasks throw nothing but
/// what their points do. Only where may_share().
template <class Task>
void loop_shared(u64 count, const Task& task, u64 grain) {
#if defined(_OPENMP)
  if (!watch::active()) {
    const auto end = static_cast<i64>(count);
    const auto chunk = static_cast<i64>(grain);
#pragma omp parallel for schedule(dynamic, chunk)
    for (i64 i = 0; i < end; ++i) task(static_cast<u64>(i));
    return;
  }
#endif
  loop_that_stops(true, count, task, grain);
}

}  // namespace crenel::core
