// The numbers that a GPU's launches go by, as dictionaries; crenel/tuning.py has files and the
// search.
#include "crenel/device/tuning.h"

#include <nanobind/stl/map.h>

#include "bindings.h"

namespace crenel::python {
namespace {

using device::Device;
using device::kTunables;
using device::Tunable;
using device::Tuning;

const device::TunableInfo& info(u32 index) { return device::info_of(static_cast<Tunable>(index)); }

std::map<std::string, u64> named(const Tuning& tuning) {
  std::map<std::string, u64> found;
  for (u32 i = 0; i < kTunables; ++i) found.emplace(info(i).name, tuning[i]);
  return found;
}

void set(Device& device, const std::map<std::string, u64>& values) {
  const auto parts = device.parts();  // of one kind: the first refuses what any would
  for (const auto& part : parts) set(*part, values);
  if (!parts.empty()) return;
  Tuning wanted = device::tuning(device);
  for (const auto& [name, value] : values) wanted[u32(device::tunable_of(name))] = value;
  device::set_tuning(device, wanted);
}

nb::dict tunables() {
  nb::dict all;
  for (u32 i = 0; i < kTunables; ++i)
    all[info(i).name] = nb::make_tuple(info(i).least, info(i).most, info(i).meaning);
  return all;
}

}  // namespace

void bind_tuning(nb::module_& m) {
  m.def(
      "tunables", &tunables, nb::sig("def tunables() -> dict[str, tuple[int, int, str]]"),
      "What the launches of a GPU go by: the least and the most that each may be, and what it is.");
  m.def(
      "tuning_of", [](const Device& d) { return named(device::tuning(d)); }, "device"_a,
      "The numbers of a device now. Raises UnsupportedError for one that has none, StateError "
      "where\n"
      "its parts differ in one.");
  m.def(
      "default_tuning", [](const Device& d) { return named(device::default_tuning(d)); },
      "device"_a, "The numbers that it began with. Raises as tuning_of.");
  m.def("set_tuning", &set, "device"_a, "values"_a,
        "Set some of them, on all parts of a device, of operations that are queued from now on. "
        "Raises\n"
        "ParameterError for a name that there is not and a number out of its range, and then sets "
        "none.");
}

}  // namespace crenel::python
