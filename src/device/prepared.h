// Host tables with what a backend made of them.
#pragma once

#include <memory>
#include <vector>

#include "crenel/core/error.h"
#include "rns/tables.h"

namespace crenel::device {

/// What a backend keeps of a host table, in its own order and memory; each derives its own.
struct DeviceTable {
  virtual ~DeviceTable() = default;
};

/// A table with its backend-ordered copy; made once a context by PolyKernels::prepare and
/// FhecoreKernels::prepare.
template <class Table>
struct Prepared {
  std::shared_ptr<const Table> table;
  std::shared_ptr<const DeviceTable> device;  ///< null where the host table is used as is
  /// ModUp, Divide: the conversions inside, prepared one by one, for the default compositions.
  std::shared_ptr<const std::vector<Prepared<rns::BaseConversion>>> conversions = nullptr;

  const Table* operator->() const { return table.get(); }
  const Table& operator*() const { return *table; }
  explicit operator bool() const { return table != nullptr; }
  /// The copy of the backend whose type T is; StateError for a table that others prepared.
  template <class T>
  const T& on_device() const {
    if (const T* copy = dynamic_cast<const T*>(device.get())) return *copy;
    throw StateError("table was not prepared by these kernels");
  }
};

}  // namespace crenel::device
