// Devices: what there is, and why there is no GPU.
#include <nanobind/stl/shared_ptr.h>

#include "bindings.h"

namespace crenel::python {
namespace {

using device::DeviceInfo;
using device::Kind;

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::ref:
      return "ref";
    case Kind::cpu:
      return "cpu";
    case Kind::cuda:
      return "cuda";
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

}  // namespace

void bind_device(nb::module_& m) {
  nb::class_<DeviceInfo>(m, "DeviceInfo", "A processor that contexts can be placed on.")
      .def_ro("name", &DeviceInfo::name,
              "Name for Context(device=...): 'ref', 'cpu', 'cuda:0', ...")
      .def_prop_ro(
          "kind", [](const DeviceInfo& d) { return kind_name(d.kind); }, "'ref', 'cpu' or 'cuda'.")
      .def_ro("description", &DeviceInfo::description,
              "Processor or GPU model, instruction set or compute capability.")
      .def_ro("memory_bytes", &DeviceInfo::memory_bytes, "Bytes of device memory; 0: host memory.")
      .def("__repr__", [](const DeviceInfo& d) {
        return cat("<crenel device ", d.name, ": ", d.description, ">");
      });
  nb::class_<device::Device>(
      m, "Device",
      "A processor with its memory, opened once. Contexts of any scheme and parameters that are\n"
      "given one Device share it, and objects of contexts with equal parameters work together.")
      .def(nb::new_([](const std::string& name) { return device::open(name); }), "name"_a = "auto",
           "Open 'ref', 'cpu', 'cuda', 'cuda:<index>' or 'auto' (the first GPU when there is one,\n"
           "else the CPU). Raises DeviceError saying why a device cannot be had.")
      .def_prop_ro(
          "info", [](const device::Device& d) { return d.info(); }, "Name, kind and description.")
      .def("__repr__", [](const device::Device& d) {
        return cat("<crenel.Device ", d.info().name, ": ", d.info().description, ">");
      });
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
