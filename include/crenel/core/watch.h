// Long work shows how far it is, and stops when it is told to (docs/guide/long-work.md).
#pragma once

#include <atomic>
#include <functional>
#include <memory>

#include "crenel/core/error.h"
#include "crenel/core/types.h"

namespace crenel {

/// Work that was told to stop by a CancelToken, and left nothing behind.
class Cancelled : public Error {
 public:
  /// With a message that says what stopped.
  explicit Cancelled(const std::string& message, std::vector<ErrorField> f = {})
      : Error("Cancelled", message, std::move(f)) {}
};

namespace watch {

class Scope;
class Task;

namespace detail {
extern thread_local constinit Scope* current;
void check(Scope& scope);
void advance(Scope& scope, u64 units);
}  // namespace detail

/// A place where work may stop: what the innermost Scope of this thread throws leaves from here.
/// Nothing where there is no Scope. The library's operations have points a few milliseconds apart.
inline void point() {
  if (detail::current != nullptr) [[unlikely]]
    detail::check(*detail::current);
}

/// The Task under way has done `units` more; a point, too.
inline void advance(u64 units = 1) {
  if (detail::current != nullptr) [[unlikely]]
    detail::advance(*detail::current, units);
}

/// Whether this thread's work is watched at all: a wait is then to look up from time to time.
inline bool active() noexcept { return detail::current != nullptr; }

/// Whether somebody wants to know how far the work of this thread is: it is then done in pieces
/// that can be counted.
bool reported() noexcept;

/// Watches the work of the thread that makes it, from then until it goes: the last one made is the
/// innermost, which goes first. To be derived from; Watch is for most uses.
class Scope {
 public:
  /// From now on, in this thread.
  Scope() noexcept;
  virtual ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 protected:
  /// Called on this thread, at points, about 20 times a second and not while an exception is under
  /// way; of outer scopes too. What it throws stops the work.
  virtual void poll() {}
  /// Called at points once the flag of watch_flag() is set; throws.
  virtual void stop() {}
  /// How far a Task is: first with done = 0, last with done = total, at most about 20 times a
  /// second between; `done` never decreases. What it throws stops the work.
  virtual void report(u64 done, u64 total, const char* what) {
    static_cast<void>(done), static_cast<void>(total), static_cast<void>(what);
  }
  /// report() is called only after this.
  void want_reports() noexcept { reports_ = true; }
  /// Hides the outer scope's report(): nobody is told.
  void hide_reports() noexcept { hides_ = true; }
  /// Read at every point; lives as long as this.
  void watch_flag(const std::atomic<bool>* flag) noexcept { flag_ = flag; }

 private:
  friend class Task;
  friend void detail::check(Scope&);
  friend void detail::advance(Scope&, u64);
  friend bool reported() noexcept;
  Scope* reporter() noexcept;
  bool unwinding() const noexcept;
  void poll_all(i64 now);
  void tell(i64 now);

  Scope* const outer_;
  const int exceptions_;  ///< under way when this was made
  const std::atomic<bool>* flag_ = nullptr;
  bool reports_ = false, hides_ = false;
  i64 poll_due_ = 0, report_due_ = 0;  ///< milliseconds; 0: not yet
  Task* task_ = nullptr;               ///< the outermost one under way
};

/// Points of this thread do nothing while it lives: for what must not be left half done.
class Shield {
 public:
  /// From now on, in this thread, until it goes.
  Shield() noexcept;
  ~Shield();
  Shield(const Shield&) = delete;
  Shield& operator=(const Shield&) = delete;

 private:
  Scope* hidden_;
};

/// A stretch of work of `total` units, counted by advance(). Inside another one it is part of that,
/// whose total counts its units.
class Task {
 public:
  /// `what`, for people, lives as long as this.
  Task(u64 total, const char* what);
  ~Task();
  /// All of it is done: for work whose last units have no place of their own.
  void finish();
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;

 private:
  friend class Scope;
  friend void detail::advance(Scope&, u64);
  Scope* scope_ = nullptr;  ///< who is told; null: nobody, or it is part of another
  u64 total_, done_ = 0;
  const char* what_;
};

}  // namespace watch

/// Tells work to stop, from any thread. Copies are the same token.
class CancelToken {
 public:
  /// A token that nobody has cancelled.
  CancelToken() : cancelled_(std::make_shared<std::atomic<bool>>(false)) {}
  /// Work under a Watch with this token throws Cancelled at its next point, now and from now on.
  void cancel() const noexcept { cancelled_->store(true, std::memory_order_relaxed); }
  /// Whether cancel() was called, by any thread.
  bool cancelled() const noexcept { return cancelled_->load(std::memory_order_relaxed); }

 private:
  friend class Watch;
  std::shared_ptr<std::atomic<bool>> cancelled_;
};

/// What the work of this thread is watched with while the object lives:
///   CancelToken token;                                    // token.cancel() from another thread
///   const Watch watch({.token = token});
///   auto keys = client.evaluation_keys(request);          // throws Cancelled
/// After a stop no object is half made: what was being made is gone, all else is as it was.
/// The functions must not use objects of the library that the watched work uses.
class Watch final : public watch::Scope {
 public:
  /// What may stop the work, and who is told of it; each may be left out.
  struct Options {
    CancelToken token{};
    /// Called about 20 times a second; throws to stop the work, anything that is caught outside.
    std::function<void()> poll{};
    /// How far the work is: watch::Scope::report.
    std::function<void(u64 done, u64 total, const char* what)> progress{};
  };
  /// From now on, in this thread, until it goes.
  explicit Watch(Options options);

 private:
  void poll() override;
  void stop() override;
  void report(u64 done, u64 total, const char* what) override;

  Options options_;
};

}  // namespace crenel
