#include "watch.h"

#include "bindings.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace crenel::python {
namespace {

// Of this thread: who is told, owned, and whether a callback or a handler runs amid an operation.
struct Here {
  PyObject* sink = nullptr;
  bool calling = false;
};
thread_local constinit Here here;

PyObject* bar = nullptr;  // the class that draws; for as long as the process lives

void register_bar(nb::object type) {
  Py_XDECREF(bar);
  bar = type.release().ptr();
}

struct Calling {
  Calling() { here.calling = true; }
  ~Calling() { here.calling = false; }
};

/// Other threads need not wait for the GIL to learn that handlers do not run on them.
bool handles_signals() {
#if defined(__linux__)
  return syscall(SYS_gettid) == getpid();
#else
  return true;
#endif
}

/// The sink before, which may be none.
nb::object exchange_sink(nb::object sink) {
  if (sink.is_none()) sink = nb::object();
  return nb::steal(std::exchange(here.sink, sink.release().ptr()));
}

nb::object set_progress(nb::object sink) {
  if (!sink.is_none() && !PyCallable_Check(sink.ptr()))
    throw nb::type_error("progress must be a function f(done, total, what)");
  nb::object before = exchange_sink(std::move(sink));
  return before.is_valid() ? before : nb::none();
}

}  // namespace

Audience::Audience() {
  if (here.calling)
    throw StateError(
        "a progress function or a signal handler computes while an operation of its thread is "
        "under way; let it note what it has to, raise to stop the operation, and compute then",
        {{"found", "an operation under way"}, {"expected", "none on this thread"}});
  if (here.sink != nullptr) sink_ = nb::borrow(here.sink);
}

void PythonScope::poll() {
  if (!handles_signals()) return;
  const nb::gil_scoped_acquire gil;
  const Calling calling;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void PythonScope::report(u64 done, u64 total, const char* what) {
  const nb::gil_scoped_acquire gil;
  const Calling calling;
  const nb::handle function(sink_);
  function(done, total, what);
}

Progress::Progress(nb::handle progress) {
  if (progress.is_none()) return;
  if (bar == nullptr) throw nb::import_error("crenel._crenel was imported alone; import crenel");
  nb::object sink;
  if (progress.is(Py_True))
    sink = bar_ = nb::handle(bar)();
  else if (!progress.is(Py_False))
    sink = nb::borrow(progress);
  if (sink.is_valid() && !PyCallable_Check(sink.ptr()))
    throw nb::type_error("progress must be a bool or a function f(done, total, what)");
  before_ = exchange_sink(std::move(sink));
  set_ = true;
}

Progress::~Progress() {
  if (!set_) return;
  exchange_sink(std::move(before_));
  if (!bar_.is_valid()) return;
  try {
    bar_.attr("close")();
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("closing a progress bar");
  }
}

void bind_watch(nb::module_& m) {
  m.def("register_bar", &register_bar, "type"_a,
        "States the class whose objects draw what progress=True shows.");
  m.def("set_progress", &set_progress, "sink"_a.none(),
        nb::sig("def set_progress(sink: collections.abc.Callable[[int, int, str], object] | None, "
                "/) -> collections.abc.Callable[[int, int, str], object] | None"),
        "Whom operations of this thread tell how far they are, from now on; returns who was told\n"
        "before. crenel.progress does this for a while.");
}

}  // namespace crenel::python
