// CUDA status codes to DeviceError.
#pragma once

#include <cuda_runtime.h>

#include "core/fork.h"
#include "crenel/core/error.h"

namespace crenel::backend::cuda {

[[noreturn]] inline void fail(cudaError_t status, const char* what) {
  static_cast<void>(
      cudaGetLastError());  // a failed call must not be reported again by the next one
  throw DeviceError(
      cat("CUDA: ", what, ": ", cudaGetErrorName(status), ", ", cudaGetErrorString(status)),
      {{"call", what}, {"status", cudaGetErrorName(status)}});
}

#define CRENEL_CUDA_TRY(call)                                                              \
  do {                                                                                     \
    const cudaError_t crenel_status = (call);                                              \
    if (crenel_status != cudaSuccess) ::crenel::backend::cuda::fail(crenel_status, #call); \
  } while (0)

/// The process that an object of CUDA was made in: after fork() nobody else may touch it, not even
/// to destroy it.
class OwnProcess {
 public:
  bool here() const noexcept { return forks_ == core::forks(); }

 private:
  u64 forks_ = core::forks();
};

/// Makes a device current for the calling thread, and the former one again at the end.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) : wanted_(device) {
    CRENEL_CUDA_TRY(cudaGetDevice(&former_));
    if (former_ != wanted_) CRENEL_CUDA_TRY(cudaSetDevice(wanted_));
  }
  ~DeviceGuard() {
    if (former_ != wanted_) static_cast<void>(cudaSetDevice(former_));
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int wanted_;
  int former_ = 0;
};

}  // namespace crenel::backend::cuda
