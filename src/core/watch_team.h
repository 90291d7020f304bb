// A loop on several threads that stops as one: an exception must not leave a thread of it.
#pragma once

#include <atomic>
#include <exception>
#include <optional>
#include <thread>

#include "crenel/core/watch.h"

namespace crenel::watch {

/// Of one parallel loop, whose calling thread makes it, is a member and keeps its Scope: polls and
/// signals come to the thread that expects them, and what it throws stops the others.
class Team {
 public:
  /// Runs a task, or nothing once the team has stopped.
  template <class F>
  void run(const F& f) noexcept {
    if (stopped_.load(std::memory_order_relaxed)) return;
    try {
      point();
      f();
    } catch (...) {
      if (!stopped_.exchange(true)) thrown_ = std::current_exception();
    }
  }
  /// Behind the loop.
  void rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  friend class Member;
  std::atomic<bool> stopped_{false};
  const std::thread::id caller_ = std::this_thread::get_id();
  std::exception_ptr thrown_;  ///< written by whoever stopped the team
};

/// What a thread of the team is, the calling one aside, while it lives: points inside its tasks
/// end them once the team has stopped.
class Member {
 public:
  explicit Member(const Team& team) noexcept {
    if (std::this_thread::get_id() != team.caller_) scope_.emplace(team);
  }

 private:
  struct Stopped {};
  class Other final : public Scope {
   public:
    explicit Other(const Team& team) noexcept { watch_flag(&team.stopped_); }

   private:
    // No error: the team catches it, and nothing else may.
    void stop() override { throw Stopped(); }  // NOLINT(bugprone-std-exception-baseclass)
  };
  std::optional<Other> scope_;
};

}  // namespace crenel::watch
