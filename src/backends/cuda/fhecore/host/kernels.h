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

  Prepared<device::FhecoreTransform> prepare(device::FhecoreTransform table) override;
  Prepared<device::FhecoreConversion> prepare(device::FhecoreConversion table) override;

  void fhe_sync(Stream& stream, const device::FhecoreTiles& tiles) override;
  void ntt(Stream& stream, View out, ConstView in,
           const Prepared<device::FhecoreTransform>& table) override;
  void intt(Stream& stream, View out, ConstView in,
            const Prepared<device::FhecoreTransform>& table) override;
  void base_convert(Stream& stream, View out, ConstView in,
                    const Prepared<device::FhecoreConversion>& table) override;

  device::FhecoreCounts counts(Stream& stream) override;
  void reset_counts(Stream& stream) override;

 private:
  void transform(Stream& stream, View out, ConstView in,
                 const Prepared<device::FhecoreTransform>& table, bool inverse);
  unsigned long long* counters() const;

  std::shared_ptr<CudaDevice> device_;
  DeviceBytes counters_;  ///< device::FhecoreCounts
};

}  // namespace crenel::backend::cuda
