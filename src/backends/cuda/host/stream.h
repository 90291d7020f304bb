// Device and stream of the CUDA backend.
#pragma once

#include "backends/cuda/host/error.h"
#include "device/backend.h"

namespace crenel::backend::cuda {

class CudaDevice final : public device::Backend {
 public:
  explicit CudaDevice(int index);
  int index() const { return index_; }
  int compute_major() const { return compute_major_; }
  u32 processors() const { return processors_; }
  /// Shared memory that a block may ask for.
  std::size_t shared_bytes() const { return shared_bytes_; }

  const device::DeviceInfo& info() const override { return info_; }
  std::shared_ptr<device::Stream> make_stream() override;
  void* allocate(std::size_t bytes) override;
  void deallocate(void* memory) noexcept override;
  std::unique_ptr<device::Kernels<u32>> make_kernels(
      std::shared_ptr<const ring::Ring<u32>> ring) override;
  using device::Backend::make_kernels;

 private:
  int index_;
  int compute_major_;
  u32 processors_;
  std::size_t shared_bytes_;
  device::DeviceInfo info_;
};

class CudaStream final : public device::Stream {
 public:
  explicit CudaStream(std::shared_ptr<CudaDevice> device);
  ~CudaStream() override;

  cudaStream_t handle() const { return stream_; }
  int device_index() const { return index_; }
  /// Programmatic dependent launch, compute capability 9.0.
  bool can_overlap() const { return can_overlap_; }
  /// Multiprocessors.
  u32 processors() const { return processors_; }

  void synchronize() override;
  void copy_in(void* to, const void* from, std::size_t bytes) override;
  void copy_out(void* to, const void* from, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                 std::size_t row_bytes, std::size_t rows) override;
  void fill_zero(void* data, std::size_t bytes) override;
  void wait_for(device::Stream& other) override;
  void* native_handle() override { return stream_; }

 protected:
  std::unique_ptr<device::GraphExec> record(const std::function<void()>& work) override;

 private:
  int index_;
  bool can_overlap_;
  u32 processors_;
  cudaStream_t stream_ = nullptr;
};

/// The CUDA stream behind a stream; StateError for a stream of another backend.
CudaStream& cuda_stream(device::Stream& stream);

}  // namespace crenel::backend::cuda
