#include "crenel/core/watch.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "crenel/core/error.h"

#if defined(__linux__)
#include <ctime>
#endif

namespace crenel {
namespace watch {
namespace {

constexpr i64 kPeriod = 50;  // milliseconds: of polls, and of reports

// Read at every point: the coarse clock costs a few nanoseconds and is right within 4 ms.
i64 milliseconds() {
#if defined(__linux__)
  timespec t{};
  if (clock_gettime(CLOCK_MONOTONIC_COARSE, &t) == 0)
    return i64(t.tv_sec) * 1000 + t.tv_nsec / 1'000'000;
#endif
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

namespace detail {

thread_local constinit Scope* current = nullptr;

void check(Scope& scope) {
  // Of outer scopes too: an inner one may live for a single short operation, which polls nobody.
  for (Scope* s = &scope; s != nullptr; s = s->outer_)
    if (s->flag_ != nullptr && s->flag_->load(std::memory_order_relaxed) && !scope.unwinding())
      s->stop();
  const i64 now = milliseconds();
  if (now < scope.poll_due_) return;
  if (scope.poll_due_ == 0)  // work that is over sooner is never polled
    scope.poll_due_ = now + kPeriod;
  else
    scope.poll_all(now);
}

void advance(Scope& scope, u64 units) {
  Scope* const told = scope.reporter();
  if (told != nullptr && told->task_ != nullptr) {
    Task& task = *told->task_;
    const u64 before = std::exchange(task.done_, std::min(task.total_, task.done_ + units));
    const i64 now = milliseconds();
    if (task.done_ != before && (task.done_ == task.total_ || now >= told->report_due_))
      told->tell(now);
  }
  check(scope);
}

}  // namespace detail

Scope::Scope() noexcept : outer_(detail::current), exceptions_(std::uncaught_exceptions()) {
  detail::current = this;
}

Scope::~Scope() { detail::current = outer_; }

bool Scope::unwinding() const noexcept { return std::uncaught_exceptions() > exceptions_; }

void Scope::poll_all(i64 now) {
  poll_due_ = now + kPeriod;
  if (unwinding()) return;  // a destructor at work must not throw
  const Shield shield;      // what is called may use the library
  for (Scope* scope = this; scope != nullptr; scope = scope->outer_) scope->poll();
}

Scope* Scope::reporter() noexcept {
  for (Scope* scope = this; scope != nullptr; scope = scope->outer_) {
    if (scope->reports_) return scope;
    if (scope->hides_) return nullptr;
  }
  return nullptr;
}

void Scope::tell(i64 now) {
  report_due_ = now + kPeriod;
  if (unwinding()) return;
  const Shield shield;
  report(task_->done_, task_->total_, task_->what_);
}

bool reported() noexcept {
  return detail::current != nullptr && detail::current->reporter() != nullptr;
}

Shield::Shield() noexcept : hidden_(std::exchange(detail::current, nullptr)) {}
Shield::~Shield() { detail::current = hidden_; }

Task::Task(u64 total, const char* what) : total_(total), what_(what) {
  if (total == 0 || detail::current == nullptr) return;
  Scope* const told = detail::current->reporter();
  if (told == nullptr || told->task_ != nullptr) return;
  told->task_ = this;
  try {
    told->tell(milliseconds());
  } catch (...) {
    told->task_ = nullptr;
    throw;
  }
  scope_ = told;
}

void Task::finish() {
  if (scope_ != nullptr && done_ < total_) detail::advance(*scope_, total_ - done_);
}

Task::~Task() {
  if (scope_ != nullptr) scope_->task_ = nullptr;
}

}  // namespace watch

Watch::Watch(Options options) : options_(std::move(options)) {
  watch_flag(options_.token.cancelled_.get());
  if (options_.progress) want_reports();
}

void Watch::poll() {
  if (options_.poll) options_.poll();
}

void Watch::stop() {
  throw Cancelled("cancelled through its token",
                  {{"found", "a cancelled token"}, {"expected", "a token that is not cancelled"}});
}

void Watch::report(u64 done, u64 total, const char* what) { options_.progress(done, total, what); }

}  // namespace crenel
