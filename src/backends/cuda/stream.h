// Device and stream of the CUDA backend: what launchers ask of them. A GPU (gpu.h) or a model of
// one that executes nothing (dry.cu).
#pragma once

#include "backends/cuda/error.h"
#include "crenel/device/account.h"
#include "device/backend.h"

namespace crenel::backend::cuda {

using device::Optimisation;
using device::Tunable;

/// What decides launches.
struct GpuModel {
  int index;  ///< of the GPU; kDry: none, nothing is executed
  int compute_major;
  u32 processors;            ///< multiprocessors
  std::size_t shared_bytes;  ///< shared memory that a block may ask for
  std::size_t l2_bytes;      ///< second-level cache
};
inline constexpr int kDry = -1;
/// Compute capability from which a launch may begin while the one before it ends.
inline constexpr int kOverlapMajor = 9;
/// The numbers that launches on such a GPU begin with (tuning.cu).
device::Tuning default_tuning(const GpuModel& model);

class CudaDevice : public device::Backend {
 public:
  CudaDevice(const GpuModel& model, device::DeviceInfo info)
      : model_(model), info_(std::move(info)) {
    begin_with(default_tuning(model));
  }
  const GpuModel& model() const { return model_; }
  int index() const { return model_.index; }
  /// Addresses are made up and must reach no CUDA call.
  bool dry() const { return model_.index == kDry; }

  /// Whether know_peer() was called for a GPU: this one reaches its memory (peers.h).
  bool knows_peer(int index) const {
    return index >= 0 && index < 64 && (peers_.load(std::memory_order_relaxed) >> index & 1) != 0;
  }
  void know_peer(int index) const {
    if (index < 64) peers_.fetch_or(u64(1) << index, std::memory_order_relaxed);
  }

  const device::DeviceInfo& info() const override { return info_; }
  std::unique_ptr<device::PolyKernels> make_poly_kernels(
      std::shared_ptr<const ring::Ring> ring) override;
  std::unique_ptr<device::TorusKernels> make_torus_kernels(device::TorusPlan plan) override;
  std::unique_ptr<device::FhecoreKernels> make_fhecore_kernels() override;

 protected:
  // The dry device behaves as a GPU does, so that any machine can test what that means.
  bool survives_fork() const noexcept override { return false; }

 private:
  GpuModel model_;
  device::DeviceInfo info_;
  mutable std::atomic<u64> peers_{0};  ///< by index
};

class CudaStream : public device::Stream {
 public:
  const GpuModel& model() const { return model_; }
  u32 processors() const { return model_.processors; }
  int device_index() const { return model_.index; }
  bool dry() const { return model_.index == kDry; }
  /// Where the calling thread's work goes: while it records, a stream of the recording's own, which
  /// what other threads queue meanwhile does not reach.
  cudaStream_t handle() const { return recording() ? recorded_ : handle_; }
  /// Programmatic dependent launch.
  bool can_overlap() const {
    return model_.compute_major >= kOverlapMajor && on(Optimisation::launch_overlap) && !joined();
  }
  bool on(Optimisation o) const {
    return static_cast<const CudaDevice&>(device()).optimisations().has(o);
  }

  /// Read once for a launch: another thread may set it meanwhile.
  u64 tuned(Tunable t) const { return static_cast<const CudaDevice&>(device()).tuned(t); }

  /// Whether the next launch of a recording comes after work of other streams, too: it must not
  /// begin while any of that ends, as a graph would let it.
  bool joined() const { return recording() && joined_; }
  void launched() {
    if (recording()) joined_ = false;
  }

  /// Adds to the account, in the stage that the calling thread has open.
  void state(device::Account& account, device::LaunchRecord record) const;

 protected:
  explicit CudaStream(const std::shared_ptr<CudaDevice>& device)
      : Stream(device), model_(device->model()) {}
  /// Every copy begins so; throws in a forked process.
  void state_copy(const char* name, std::size_t read, std::size_t written) const;

  cudaStream_t handle_ = nullptr;
  cudaStream_t recorded_ = nullptr;  ///< the recording thread's
  bool joined_ = false;              ///< likewise

 private:
  GpuModel model_;
};

/// The CUDA stream behind a stream; StateError for a stream of another backend, and in a child of
/// the process that opened the device.
CudaStream& cuda_stream(device::Stream& stream);

}  // namespace crenel::backend::cuda
