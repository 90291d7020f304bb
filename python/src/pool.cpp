#include "pool.h"

#include <nanobind/stl/shared_ptr.h>

#include "tfhe.h"

namespace crenel::python {
namespace {

using device::Device;

template <class T, class Context>
Bound<T, Context> copied(const Context& to, const Bound<T, Context>& object) {
  return {to, copy_to(to, object.value)};
}

void bind_copies(nb::module_& m) {
  m.def("copy_to", &copied<ckks::EvaluationKeys, ckks::Context>, "context"_a, "keys"_a,
        ReleaseGil(),
        "The same object on the device of `context`, by copies from memory to memory.\n\n"
        "Raises StateError for other parameters, and OutOfMemoryError, before a key is copied, "
        "where\n"
        "keys do not fit.");
  m.def(
      "copy_to",
      [](const ckks::Context& to, nb::handle object) {
        const ckks::Ciphertext& value = as_ciphertext(object);
        const Computing computing;
        return Ciphertext{to, ckks::copy_to(to, value)};
      },
      "context"_a, "ciphertext"_a,
      nb::sig("def copy_to(context: Context, ciphertext: Ciphertext | Operand) -> Ciphertext"));
  m.def("copy_to", &copied<ckks::Plaintext, ckks::Context>, "context"_a, "plaintext"_a,
        ReleaseGil());
  m.def("copy_to", &copied<tfhe::EvaluationKeys, tfhe::Context>, "context"_a, "keys"_a,
        ReleaseGil());
  m.def("copy_to", &copied<tfhe::Ciphertext, tfhe::Context>, "context"_a, "ciphertext"_a,
        ReleaseGil());
  m.def("copy_to", &copied<tfhe::Integers, tfhe::Context>, "context"_a, "integers"_a, ReleaseGil());
  m.def(
      "road_between",
      [](const Device& from, const Device& to) { return device::name_of(road_between(from, to)); },
      "origin"_a, "to"_a,
      "How bytes go from one device to another: 'within' one memory, 'peer' (from GPU to GPU) or\n"
      "'host' (through host memory). Raises UnsupportedError between a GPU and 'cuda:dry'.");
}

/// Of one thread, between enter and exit.
class Stoppable {
 public:
  explicit Stoppable(const CancelToken& token) : token_(token) {}
  void enter() {
    if (watch_) throw StateError("entered twice");
    watch_ = std::make_unique<Watch>(Watch::Options{.token = token_});
  }
  void exit() { watch_.reset(); }

 private:
  CancelToken token_;
  std::unique_ptr<Watch> watch_;
};

void bind_tokens(nb::module_& m) {
  m.def(
      "point",
      [] {
        const Computing computing;
        watch::point();
      },
      "A place where this thread's work may stop: handlers of signals run, and tokens are looked "
      "at.");
  nb::class_<CancelToken>(m, "CancelToken", "Tells work to stop, from any thread.")
      .def(nb::init<>())
      .def("cancel", &CancelToken::cancel,
           "Work under stoppable(token) raises Cancelled at its next point, now and from now on.")
      .def_prop_ro("cancelled", &CancelToken::cancelled, "Was it told?");
  nb::class_<Stoppable>(m, "stoppable",
                        "with stoppable(token): the operations of this thread end with Cancelled "
                        "once the\n"
                        "token is told to. Not shared by threads; blocks nest.")
      .def(nb::init<const CancelToken&>(), "token"_a)
      .def("__enter__", &Stoppable::enter)
      .def(
          "__exit__", [](Stoppable& s, nb::handle, nb::handle, nb::handle) { s.exit(); },
          "kind"_a.none(), "error"_a.none(), "traceback"_a.none());
}

}  // namespace

void bind_pool(nb::module_& m) {
  bind_copies(m);
  bind_tokens(m);
}

}  // namespace crenel::python
