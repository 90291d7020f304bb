#include "boot/memory.h"

#include <utility>

namespace crenel::bench {

PartMemory::PartMemory(const std::shared_ptr<device::Device>& device) {
  for (auto& part : device->parts()) parts_.push_back({std::move(part), {}});
  if (parts_.empty()) parts_.push_back({device, {}});
  step("before");
}

void PartMemory::step(const std::string& name) {
  for (auto& [device, steps] : parts_) {
    device->trim();
    const device::MemoryUse use = device->memory();
    Json::Object counts{{"in_use", device->pools().in_use}};
    counts.emplace_back("driver", use.total != 0 ? Json(use.used) : Json());
    steps.emplace_back(name, std::move(counts));
  }
}

Json::Array PartMemory::parts() const {
  Json::Array found;
  for (const auto& [device, steps] : parts_)
    found.push_back(Json::Object{
        {"part", device->info().name}, {"peak", device->pools().peak}, {"steps", steps}});
  return found;
}

}  // namespace crenel::bench
