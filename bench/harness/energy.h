// Who counts the energy of a device. Python's `crenel bench` brings one; a program alone has none.
#pragma once

#include <functional>
#include <memory>

#include "crenel/device/device.h"
#include "harness/json.h"

namespace crenel::bench {

class EnergyMeter {
 public:
  virtual ~EnergyMeter() = default;
  /// UnsupportedError, with the reason, where it cannot count on this device.
  virtual void check(const std::shared_ptr<device::Device>& device) const = 0;
  /// Runs `work` once, which does `steps` of the same and waits for them; what it took, for the
  /// record.
  virtual Json measure(const std::shared_ptr<device::Device>& device, u64 steps,
                       const std::function<void()>& work) const = 0;
};

}  // namespace crenel::bench
