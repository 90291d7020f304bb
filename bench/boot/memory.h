// What each GPU of a device holds, step by step, until bootstraps run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "crenel/device/device.h"
#include "harness/json.h"

namespace crenel::bench {

/// Bytes by part of a device; one without parts is its own only part.
class PartMemory {
 public:
  /// Takes the first step, "before": before anything of ours lies there.
  explicit PartMemory(const std::shared_ptr<device::Device>& device);
  /// What there is now, of buffers alive and by the driver's count, which is of everybody; idle
  /// memory is given back before. The stream's work has to be done.
  void step(const std::string& name);
  /// [{"part": "cuda:0", "peak": .., "steps": {"keys": {"in_use": .., "driver": ..}, ..}}, ..]; the
  /// driver's count is null of host memory, which nobody counts.
  Json::Array parts() const;

 private:
  struct Part {
    std::shared_ptr<device::Device> device;
    Json::Object steps;
  };

  std::vector<Part> parts_;
};

}  // namespace crenel::bench
