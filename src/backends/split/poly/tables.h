// What each part has of a prepared table.
#pragma once

#include <vector>

#include "backends/split/blocks.h"
#include "device/poly/kernels.h"

namespace crenel::backend::split {

using device::Prepared;

/// On one layout. Where parts are groups by themselves, nothing is gathered but for a base
/// conversion alone, and `parts` have the table.
template <class Table>
struct SplitShare {
  LimbSet order;                                      ///< in which the sources are gathered
  std::vector<Prepared<rns::BaseConversion>> scales;  ///< of the sources that a part has
  std::vector<Prepared<Table>> parts;  ///< null where a part has no limb of the output
};

template <class Table>
struct SplitTable final : device::DeviceTable {
  SplitShare<Table> whole, groups;  ///< the latter where there are groups

  const SplitShare<Table>& on(const Layout& layout) const {
    return layout.groups == 1 ? whole : groups;
  }
};

}  // namespace crenel::backend::split
