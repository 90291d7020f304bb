// Which GPUs reach one another's memory.
#pragma once

#include "backends/cuda/stream.h"
#include "crenel/device/link.h"

namespace crenel::backend::cuda {

/// The road from one device's memory to another's. UnsupportedError between a GPU and a model.
device::Road road(const CudaDevice& from, const CudaDevice& to);
/// Whether kernels and copies of `user` may reach the memory of `owner`, from now on if so.
bool reaches(const CudaDevice& user, const CudaDevice& owner);
/// "copy_within", "copy_peer", "copy_host".
const char* launch_name(device::Road road);

}  // namespace crenel::backend::cuda
