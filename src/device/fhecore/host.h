// FhecoreKernels on host memory: the plan, tile by tile, by the functional model of the
// instruction. This is the specification; `ref` runs it on one thread. The cpu backend runs the
// same on all threads: an emulation of an instruction has no faster form worth a second
// implementation.
#pragma once

#include "device/fhecore/kernels.h"

namespace crenel::device {

class HostFhecoreKernels final : public FhecoreKernels {
 public:
  explicit HostFhecoreKernels(bool parallel) : parallel_(parallel) {}

  void fhe_sync(Stream& stream, const FhecoreTiles& tiles) override;
  void ntt(Stream& stream, View out, ConstView in,
           const Prepared<FhecoreTransform>& table) override;
  void intt(Stream& stream, View out, ConstView in,
            const Prepared<FhecoreTransform>& table) override;
  void base_convert(Stream& stream, View out, ConstView in,
                    const Prepared<FhecoreConversion>& table) override;
  FhecoreCounts counts(Stream&) override { return counts_; }
  void reset_counts(Stream&) override { counts_ = {}; }

 private:
  /// The passes of one direction on every limb.
  void transform(View out, ConstView in, const FhecoreTransform& table, bool inverse);
  /// body(i, counts) for i < count, on this thread or on all of them.
  template <class Body>
  void for_each(u64 count, const Body& body);

  bool parallel_;
  FhecoreCounts counts_;
};

}  // namespace crenel::device
