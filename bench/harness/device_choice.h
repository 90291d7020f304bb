// Which device a program opens, and what it is to do without or differently there.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "crenel/device/device.h"
#include "crenel/device/optimisations.h"
#include "harness/arguments.h"

namespace crenel::bench {

struct DeviceChoice {
  std::string name = "auto";
  device::Optimisations on;
  std::vector<std::pair<std::string, u64>> tuned;  ///< numbers that launches go by

  /// --device, --without and --tune. Both of the latter may be given several times.
  void add_to(Arguments& arguments);
  /// ParameterError for numbers that there are not, or out of their range.
  std::shared_ptr<device::Device> open() const { return open_as(name); }
  /// Another device with the same choices; of one with parts, each.
  std::shared_ptr<device::Device> open_as(const std::string& other) const;
};

}  // namespace crenel::bench
