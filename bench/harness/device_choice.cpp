#include "harness/device_choice.h"

#include "crenel/core/error.h"
#include "crenel/device/tuning.h"

namespace crenel::bench {

void DeviceChoice::add_to(Arguments& arguments) {
  arguments.text("--device", name, "auto, cpu, cuda, cuda:<index> or ref")
      .value("--without", "an optimisation that is off (crenel bench ablation names them)",
             [this](const std::string& off) { on = on.without(device::optimisation_of(off)); })
      .value("--tune", "NAME=NUMBER, one that launches go by (crenel tune)",
             [this](const std::string& text) {
               const auto at = text.find('=');
               if (at == std::string::npos)
                 throw ParameterError(cat("--tune: \"", text, "\", expected NAME=NUMBER"),
                                      {{"option", "--tune"}, {"value", text}});
               tuned.emplace_back(text.substr(0, at),
                                  parse_number("--tune", text.substr(at + 1), 0, u64(1) << 40));
             });
}

std::shared_ptr<device::Device> DeviceChoice::open_as(const std::string& other) const {
  auto device = device::open(other, on);
  if (tuned.empty()) return device;
  auto tuning = device::tuning(*device);
  for (const auto& [number, value] : tuned) tuning[u32(device::tunable_of(number))] = value;
  device::set_tuning(*device, tuning);
  return device;
}

}  // namespace crenel::bench
