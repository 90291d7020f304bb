// What each part has of a prepared table.
#pragma once

#include "device/poly/kernels.h"

namespace crenel::backend::split {

using device::Prepared;
using rns::LimbSet;

struct SplitConversion final : device::DeviceTable {
  LimbSet order;  ///< in which the sources are gathered
  std::vector<Prepared<rns::BaseConversion>> parts;
};

/// Of ModUp and Divide.
template <class Table>
struct SplitTable final : device::DeviceTable {
  LimbSet order;                                      ///< in which the sources are gathered
  std::vector<Prepared<rns::BaseConversion>> scales;  ///< of the sources that a part has
  std::vector<Prepared<Table>> parts;  ///< null where a part has no limb of the output
};

}  // namespace crenel::backend::split
