#include "device/poly/compose/workspace.h"

namespace crenel::device {

template <class W>
Prepared<rns::BaseConversion<W>> Kernels<W>::prepare(rns::BaseConversion<W> table) {
  return {std::make_shared<const rns::BaseConversion<W>>(std::move(table)), nullptr};
}

template <class W>
Prepared<rns::ModUp<W>> Kernels<W>::prepare(rns::ModUp<W> table) {
  auto parts = std::make_shared<compose::Conversions<W>>();
  for (const auto& digit : table.digits) parts->push_back(prepare(digit.conversion));
  return {std::make_shared<const rns::ModUp<W>>(std::move(table)), nullptr, parts};
}

template <class W>
Prepared<rns::Divide<W>> Kernels<W>::prepare(rns::Divide<W> table) {
  auto parts = std::make_shared<compose::Conversions<W>>();
  parts->push_back(prepare(table.conversion));
  return {std::make_shared<const rns::Divide<W>>(std::move(table)), nullptr, parts};
}

// The class itself (its virtual table) lives here; the fused operations are instantiated member by
// member in their own files.
template class Kernels<u32>;
template class Kernels<u64>;

}  // namespace crenel::device
