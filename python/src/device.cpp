// Devices: what there is, and why there is no GPU.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "crenel/core/secret_memory.h"

namespace crenel::python {
namespace {

using device::Device;
using device::DeviceInfo;
using device::Kind;
using device::MemoryUse;
using device::PoolUse;

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::ref:
      return "ref";
    case Kind::cpu:
      return "cpu";
    case Kind::cuda:
      return "cuda";
    case Kind::split:
      return "split";
  }
  return "unknown";
}

nb::dict build_info() {
  nb::dict info;
  for (const auto& [name, value] :
       {std::pair("compiler", CRENEL_BUILD_COMPILER), std::pair("build_type", CRENEL_BUILD_TYPE),
        std::pair("cuda_toolkit", CRENEL_BUILD_CUDA),
        std::pair("cuda_architectures", CRENEL_BUILD_ARCHITECTURES)})
    info[name] = value;
  return info;
}

void bind_info(nb::module_& m) {
  nb::class_<DeviceInfo>(m, "DeviceInfo", "A processor that contexts can be placed on.")
      .def_ro("name", &DeviceInfo::name,
              "Name for Context(device=...): 'ref', 'cpu', 'cuda:0', ...")
      .def_prop_ro(
          "kind", [](const DeviceInfo& d) { return kind_name(d.kind); },
          "'ref', 'cpu', 'cuda' or 'split'.")
      .def_ro("description", &DeviceInfo::description,
              "Processor or GPU model, instruction set or compute capability.")
      .def_ro("memory_bytes", &DeviceInfo::memory_bytes, "Bytes of device memory; 0: host memory.")
      .def("__repr__", [](const DeviceInfo& d) {
        return cat("<crenel device ", d.name, ": ", d.description, ">");
      });
  nb::class_<MemoryUse>(
      m, "MemoryUse", "Bytes of a device's memory, by its driver's count: every process is in it.")
      .def_ro("used", &MemoryUse::used, "Bytes in use.")
      .def_ro("total", &MemoryUse::total, "All bytes; 0: host memory, which is not counted.")
      .def("__repr__", [](const MemoryUse& use) {
        return cat("<crenel.MemoryUse ", use.used, " of ", use.total, " bytes>");
      });
  nb::class_<PoolUse>(
      m, "PoolUse",
      "Bytes that a Device object took from its device, by its own count, tables of "
      "kernels aside.")
      .def_ro("in_use", &PoolUse::in_use, "Bytes of objects that are alive.")
      .def_ro("peak", &PoolUse::peak, "Highest in_use of each stream, added up.")
      .def_ro("idle", &PoolUse::idle, "Bytes that were freed, kept for reuse.")
      .def_ro("graphs", &PoolUse::graphs, "Bytes that recorded graphs keep for their replays.")
      .def_prop_ro("held", &PoolUse::held, "All of them: in_use + idle + graphs.")
      .def("__repr__", [](const PoolUse& use) {
        return cat("<crenel.PoolUse ", use.in_use, " bytes in use, ", use.idle, " idle, ",
                   use.graphs, " of graphs>");
      });
}

void set_idle_limit(Device& device, std::optional<Bytes> bytes) {
  device.set_idle_limit(bytes ? bytes_of(*bytes, "bytes")
                              : std::numeric_limits<std::size_t>::max());
}

void bind_secret_memory(nb::module_& m) {
  nb::class_<SecretMemory>(m, "SecretMemory",
                           "Pages of this process's memory that hold secrets: keys, seeds, errors, "
                           "decryptions on their\n"
                           "way. Device memory of a GPU is not in it.")
      .def_ro("bytes", &SecretMemory::bytes, "In use.")
      .def_ro("idle_bytes", &SecretMemory::idle_bytes, "Wiped, kept for reuse.")
      .def_ro("locked_bytes", &SecretMemory::locked_bytes, "Of both: never written to swap.")
      .def_ro("unlocked_bytes", &SecretMemory::unlocked_bytes,
              "Of both: beyond what the process may lock; raise it with `ulimit -l`.")
      .def_ro("dumpable_bytes", &SecretMemory::dumpable_bytes,
              "Of both: the system refused to leave them out of core dumps.")
      .def_ro("lock_limit", &SecretMemory::lock_limit,
              "Bytes that the process may lock (RLIMIT_MEMLOCK); 2**64 - 1: no limit.")
      .def("__repr__", [](const SecretMemory& s) {
        return cat("<crenel.SecretMemory ", s.bytes, " bytes in use, ", s.idle_bytes, " idle, ",
                   s.unlocked_bytes, " not locked>");
      });
  m.def("secret_memory", &secret_memory,
        "How well this process's secrets are kept, now: a SecretMemory in bytes. What the system\n"
        "does not let it lock is used nevertheless, and is in `unlocked_bytes`.");
}

void bind_class(nb::module_& m) {
  nb::class_<Device>(
      m, "Device",
      "A processor with its memory, opened once. Contexts of any scheme and parameters that are\n"
      "given one Device share it, and objects of contexts with equal parameters work together.")
      .def(nb::new_([](const std::string& name, std::optional<device::Optimisations> wanted) {
             return released(
                 [&] { return device::open(name, wanted.value_or(device::Optimisations())); });
           }),
           "name"_a = "auto", "optimisations"_a = nb::none(),
           "Open 'ref', 'cpu', 'cuda', 'cuda:<index>' or 'auto' (the first GPU when there is one,\n"
           "else the CPU), a part of a GPU's multiprocessors ('cuda:0/1of2'), or a model of a GPU, "
           "which\n"
           "only states its launches: 'cuda:dry', an H200, 'cuda:dry:<index>', one of several, or "
           "of\n"
           "another card, such as 'cuda:dry-a100' (docs/guide/traffic_account.md); or several as "
           "one,\n"
           "joined by + ('cuda:0+1'), which divide the limbs of\n"
           "every polynomial (docs/guide/gpus.md); with the optimisations that are wanted: None: "
           "all.\n"
           "Raises DeviceError saying why a device cannot be had.")
      .def_prop_ro(
          "info", [](const Device& d) { return d.info(); }, "Name, kind, description and memory.")
      .def_prop_ro(
          "name", [](const Device& d) { return d.info().name; }, "As in `info`.")
      .def_prop_ro(
          "kind", [](const Device& d) { return kind_name(d.info().kind); }, "As in `info`.")
      .def_prop_ro(
          "description", [](const Device& d) { return d.info().description; }, "As in `info`.")
      .def_prop_ro(
          "memory_bytes", [](const Device& d) { return d.info().memory_bytes; }, "As in `info`.")
      .def_prop_ro(
          "processors", [](const Device& d) { return d.info().processors; },
          "What computes at the same time: threads, multiprocessors.")
      .def_prop_ro(
          "parts", [](const Device& d) { return d.parts(); },
          "The devices that this one is made of, each with the memory of its share: a list, empty "
          "for\n"
          "one that is not made of others.")
      .def_prop_ro(
          "has_graphs", [](const Device& d) { return d.has_graphs(); },
          "Whether its recordings are replayed as graphs: of GPUs, one or several that share each\n"
          "ciphertext.")
      .def_prop_ro(
          "available_bytes",
          [](const Device& d) {
            nb::gil_scoped_release release;
            return d.available();
          },
          "Bytes that contexts on this device could take now: what the driver states free, or, of\n"
          "host memory, the least of MemAvailable, what the control groups leave and RLIMIT_AS; "
          "and\n"
          "what this object keeps idle. Requests that are surely larger raise OutOfMemoryError "
          "before\n"
          "anything is taken (docs/guide/memory.md).")
      .def_prop_rw(
          "optimisations", [](const Device& d) { return device::optimisations(d); },
          &device::set_optimisations,
          "Those of operations that are queued from now on; what was recorded into a graph keeps\n"
          "what it was recorded with. Memory is estimated for all of them: without some,\n"
          "operations take more.")
      .def("memory", &Device::memory, ReleaseGil(),
           "Bytes in use and in all, by the driver: every process is in it.")
      .def("pools", &Device::pools, ReleaseGil(),
           "Bytes that this object took for its contexts, and what of them is idle.")
      .def("trim", &Device::trim, ReleaseGil(),
           "Give all idle memory back to the device; waits for queued work. What runs next takes\n"
           "its memory anew.")
      .def(
          "set_idle_limit", &set_idle_limit, "bytes"_a, ReleaseGil(),
          nb::sig("def set_idle_limit(self, bytes: int | None) -> None"),
          "The most idle memory to keep, for each stream of work; None: no limit but that of the\n"
          "pool, which gives back what is idle beyond a quarter of the peak in use when it takes\n"
          "new memory. A limit below what a computation reuses makes every call of it take and\n"
          "give back memory, which waits for the device. Raises ParameterError for a negative one.")
      .def("__repr__", [](const Device& d) {
        return cat("<crenel.Device ", d.info().name, ": ", d.info().description, ">");
      });
}

}  // namespace

void bind_device(nb::module_& m) {
  bind_info(m);
  bind_class(m);
  bind_secret_memory(m);
  m.def("devices", &device::available, "Every device that a context would accept now.");
  m.def(
      "device_info", [](const std::string& name) { return device::open(name)->info(); },
      "name"_a = "auto", ReleaseGil(),
      "The device that Context(device=name) would use. DeviceError says why it cannot be had.");
  m.def("cuda_unavailable_reason", &device::cuda_unavailable_reason,
        "Why there is no CUDA device: not built, no driver, no GPU. Empty when there is one.");
  m.def("build_info", &build_info, nb::sig("def build_info() -> dict[str, str]"),
        "How this library was built: compiler, build_type, cuda_toolkit and cuda_architectures\n"
        "(both empty without CUDA).");
}

}  // namespace crenel::python
