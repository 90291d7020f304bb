// The emulation of FHECore on CUDA: tables and launches.
#pragma once

#include "backends/cuda/memory.h"
#include "device/fhecore/kernels.h"

namespace crenel::backend::cuda {

using device::Prepared;
using device::Stream;

class CudaFhecoreKernels final : public device::FhecoreKernels {
 public:
  explicit CudaFhecoreKernels(std::shared_ptr<CudaDevice> device);

  device::FhecoreCounts counts(Stream& stream) override;
  void reset_counts(Stream& stream) override;

 private:
  using DeviceTable = device::DeviceTable;
  std::shared_ptr<const DeviceTable> do_prepare(const device::FhecoreTransform& table) override;
  std::shared_ptr<const DeviceTable> do_prepare(const device::FhecoreConversion& table) override;
  void do_fhe_sync(Stream& stream, const device::FhecoreTiles& tiles) override;
  void do_transform(Stream& stream, View out, ConstView in,
                    const Prepared<device::FhecoreTransform>& table, bool inverse) override;
  void do_base_convert(Stream& stream, View out, ConstView in,
                       const Prepared<device::FhecoreConversion>& table) override;
  unsigned long long* counters() const;

  std::shared_ptr<CudaDevice> device_;
  DeviceBytes counters_;  ///< device::FhecoreCounts
};

}  // namespace crenel::backend::cuda
