// The traffic account of a context's stream.
#include <mutex>

#include "bindings.h"

namespace crenel::python {
namespace {

using device::Account;
using device::LaunchRecord;
using device::Stream;

nb::str text(std::string_view view) { return nb::str(view.data(), view.size()); }

nb::list records(const std::vector<LaunchRecord>& launches) {
  nb::list list;
  for (const LaunchRecord& r : launches) {
    nb::dict d;
    d["kernel"] = text(r.kernel);
    d["work"] = device::name_of(r.work);
    d["stage"] = text(r.stage);
    d["limbs"] = r.limbs;
    d["polys"] = r.polys;
    d["read_bytes"] = r.read_bytes;
    d["written_bytes"] = r.written_bytes;
    d["streamed_bytes"] = r.streamed_bytes;
    d["repeated_bytes"] = r.repeated_bytes;
    d["multiply_adds"] = r.multiply_adds;
    d["butterflies"] = r.butterflies;
    d["replayed"] = r.replayed;
    d["overlapped"] = r.overlapped;
    list.append(std::move(d));
  }
  return list;
}

/// An account that takes itself off its stream when it goes. Streams share the records: a launch
/// that another thread states at that moment finds them alive.
struct Profile {
  std::shared_ptr<Account> account = std::make_shared<Account>();
  ForkMutex mutex;
  std::shared_ptr<Stream> stream;

  Profile() = default;
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;
  ~Profile() {
    try {
      detach();
    } catch (const Error&) {
      return;  // in a forked child: a lock that another thread of the parent held
    }
  }

  void attach(const ckks::Context& context) {
    const std::lock_guard lock(mutex);
    Stream& wanted = context.stream();
    if (stream != nullptr || !wanted.replace_account(nullptr, account))
      throw StateError("an account is attached already; leave its `with` block first");
    stream = wanted.shared_from_this();
  }
  void detach() {
    const std::lock_guard lock(mutex);
    if (stream != nullptr) stream->replace_account(account.get(), nullptr);
    stream.reset();
  }
};

}  // namespace

void bind_account(nb::module_& m) {
  nb::class_<Profile>(
      m, "Account",
      "What the launches of a context move and compute, launch by launch; made by\n"
      "crenel.profile. Stays empty on 'ref' and 'cpu', which state nothing. Launches of\n"
      "all threads are stated, each with the stages of its own thread; profiling may\n"
      "begin and end while others compute.")
      .def(nb::init<>())
      .def("attach", &Profile::attach, "context"_a,
           "State the launches of this context from now on; better: crenel.profile.\n\n"
           "Raises StateError when this account or this context has another already.")
      .def("detach", &Profile::detach, "State no more launches.")
      .def(
          "records", [](const Profile& p) { return records(p.account->records()); },
          nb::sig("def records(self) -> list[Record]"),
          "One dictionary a launch, in order: kernel, work, stage, limbs and polys of the output,\n"
          "read_bytes and written_bytes at the second-level cache, streamed_bytes (of those read:\n"
          "keys and plaintexts), repeated_bytes (of those read: tables, and data that the launch "
          "has\n"
          "read before), multiply_adds (core products), butterflies (of the products),\n"
          "replayed (by a graph) and overlapped (may begin while the launch before it ends).")
      .def(
          "clear", [](Profile& p) { p.account->clear(); }, "Forget the launches so far.")
      .def("__len__", [](const Profile& p) { return p.account->total().launches; })
      .def("__repr__", [](const Profile& p) {
        const device::Traffic t = p.account->total();
        return cat("<crenel.Account of ", t.launches, " launches, ",
                   (t.read_bytes + t.written_bytes) / 1000000, " MB>");
      });
}

}  // namespace crenel::python
