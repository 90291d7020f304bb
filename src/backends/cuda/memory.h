// Device memory of tables: filled once from the host, freed with its owner.
#pragma once

#include <cstring>
#include <vector>

#include "backends/cuda/stream.h"

namespace crenel::backend::cuda {

class DeviceBytes {
 public:
  DeviceBytes(std::shared_ptr<CudaDevice> device, const void* from, std::size_t bytes)
      : device_(std::move(device)), data_(device_->allocate(bytes)) {
    if (device_->dry()) return;
    const DeviceGuard guard(device_->index());
    // On the legacy stream, which the library's streams do not wait for: hence the synchronisation.
    cudaError_t status = cudaMemcpy(data_, from, bytes, cudaMemcpyHostToDevice);
    if (status == cudaSuccess) status = cudaStreamSynchronize(nullptr);
    if (status != cudaSuccess) {
      device_->deallocate(data_);
      fail(status, "upload of tables");
    }
  }
  ~DeviceBytes() { device_->deallocate(data_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  const u8* data() const { return static_cast<const u8*>(data_); }

 private:
  std::shared_ptr<CudaDevice> device_;
  void* data_;
};

/// Several arrays in one allocation; offsets are 256-byte aligned.
class TableBuilder {
 public:
  template <class T>
  std::size_t add(const std::vector<T>& values) {
    const std::size_t offset = (bytes_.size() + 255) / 256 * 256;
    bytes_.resize(offset + values.size() * sizeof(T));
    if (!values.empty())
      std::memcpy(bytes_.data() + offset, values.data(), values.size() * sizeof(T));
    return offset;
  }
  const std::vector<u8>& bytes() const { return bytes_; }

 private:
  std::vector<u8> bytes_;
};

}  // namespace crenel::backend::cuda
