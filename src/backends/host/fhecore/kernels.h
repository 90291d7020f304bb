// FhecoreKernels on host memory: the plan, tile by tile, by the functional model of the
// instruction. This is the specification; `ref` runs it on one thread. The cpu backend runs the
// same on all threads: an emulation of an instruction has no faster form worth a second
// implementation.
#pragma once

#include <functional>

#include "device/fhecore/kernels.h"

namespace crenel::backend::host {

using device::FhecoreConversion;
using device::FhecoreCounts;
using device::FhecoreTransform;
using device::Prepared;
using device::Stream;

class HostFhecoreKernels final : public device::FhecoreKernels {
 public:
  /// Runs task(i) for i < count, in any order, on any threads. Tasks do not throw.
  using Loop = void (*)(u64 count, const std::function<void(u64)>& task);
  explicit HostFhecoreKernels(Loop loop) : loop_(loop) {}

  FhecoreCounts counts(Stream&) override { return counts_; }
  void reset_counts(Stream&) override { counts_ = {}; }

 private:
  void do_fhe_sync(Stream& stream, const device::FhecoreTiles& tiles) override;
  void do_transform(Stream& stream, View out, ConstView in, const Prepared<FhecoreTransform>& table,
                    bool inverse) override;
  void do_base_convert(Stream& stream, View out, ConstView in,
                       const Prepared<FhecoreConversion>& table) override;

  /// body(i, counts) for i < count.
  template <class Body>
  void for_each(u64 count, const Body& body);

  Loop loop_;
  FhecoreCounts counts_;
};

}  // namespace crenel::backend::host
