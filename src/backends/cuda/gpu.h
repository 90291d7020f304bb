// A GPU of this machine.
#pragma once

#include <span>

#include "backends/cuda/share.h"
#include "backends/cuda/stream.h"

namespace crenel::backend::cuda {

class GpuDevice final : public CudaDevice {
 public:
  /// `share`: the part of it that kernels run on; null: all of it.
  explicit GpuDevice(int index, const std::string& name, std::unique_ptr<const Share> share = {});
  std::shared_ptr<device::Stream> make_stream() override;
  void* allocate(std::size_t bytes) override;
  void deallocate(void* memory) noexcept override;
  device::MemoryUse memory() const override;
  device::MemoryLeft left() const override;
  /// Of CUDA, to be destroyed by who asked; this GPU is current.
  cudaStream_t make_native_stream() const;

 protected:
  void* allocate_host_bytes(std::size_t bytes) override;
  void deallocate_host_bytes(void* memory) noexcept override;

 private:
  std::unique_ptr<const Share> share_;
};

class GpuStream final : public CudaStream {
 public:
  explicit GpuStream(const std::shared_ptr<CudaDevice>& device);
  ~GpuStream() override;

  void synchronize() override;
  void copy_in(void* to, const void* from, std::size_t bytes) override;
  void copy_out(void* to, const void* from, std::size_t bytes) override;
  void copy_in_secret(void* to, const void* from, std::size_t bytes) override;
  void copy_out_secret(void* to, const void* from, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                 std::size_t row_bytes, std::size_t rows) override;
  void fill_zero(void* data, std::size_t bytes) override;
  void upload(void* to, const void* from, std::size_t bytes) override;
  void wait_for(device::Stream& other) override;
  std::shared_ptr<device::Event> mark() override;
  void wait_for(const std::shared_ptr<device::Event>& event) override;
  void* native_handle() override { return handle(); }

  /// record() of several streams: as one graph, or as one of each.
  static std::vector<std::unique_ptr<device::GraphExec>> record_all(
      std::span<GpuStream* const> streams, bool each, const std::function<void()>& work);

 protected:
  std::unique_ptr<device::GraphExec> record(const std::function<void()>& work) override;

 private:
  class Recording;

  void staged(void* device, void* host, std::size_t bytes, bool in);
  /// Waits, where it can be stopped, for what was queued so far.
  void await();
  void finish_copy();

  std::mutex staging_mutex_;
  device::HostBuffer staging_;  ///< page-locked, of zeros but for the copy under way
};

}  // namespace crenel::backend::cuda
