// What a call that computes is watched by: Ctrl-C, and whoever wants to see how far it is.
#pragma once

#include <nanobind/nanobind.h>

#include "crenel/core/watch.h"

namespace crenel::python {

namespace nb = nanobind;

/// Whom this thread's calls tell how far they are; made and destroyed with the GIL held.
class Audience {
 public:
  /// StateError inside a callback or a signal handler that runs amid an operation of this thread:
  /// its locks may be held.
  Audience();
  PyObject* sink() const { return sink_.ptr(); }  ///< null: nobody

 private:
  nb::object sink_;
};

/// Polls: handlers of pending signals run here where Python runs them, on the main thread, and what
/// they raise (KeyboardInterrupt) leaves from the work.
class PythonScope final : public watch::Scope {
 public:
  explicit PythonScope(const Audience& audience) : sink_(audience.sink()) {
    if (sink_ != nullptr)
      want_reports();
    else
      hide_reports();
  }

 private:
  void poll() override;
  void report(u64 done, u64 total, const char* what) override;

  PyObject* sink_;
};

/// Around every call that computes: other Python threads run meanwhile, and it can be stopped.
class Computing {
 public:
  Computing() : scope_(audience_) {}

 private:
  Audience audience_;
  nb::gil_scoped_release release_;
  PythonScope scope_;
};

/// The argument `progress` of a function, in force while it lives, with the GIL held where it comes
/// and goes. None: as crenel.progress() says; True: a bar; False: nobody is told; or a function
/// f(done: int, total: int, what: str). TypeError for anything else.
class Progress {
 public:
  explicit Progress(nb::handle progress);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  nb::object bar_, before_;
  bool set_ = false;
};

/// Of a signature, and of a docstring.
#define CRENEL_PROGRESS_SIG \
  "progress: bool | collections.abc.Callable[[int, int, str], object] | None = None"
#define CRENEL_PROGRESS_DOC                                                                 \
  "progress : True for a bar, or a function f(done, total, what), called at most about 20 " \
  "times a\n"                                                                               \
  "    second; what it raises stops the work. Default: as `crenel.progress` says\n"

}  // namespace crenel::python
