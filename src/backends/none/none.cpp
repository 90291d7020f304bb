// The CUDA factories of a build without nvcc.
#include "crenel/core/error.h"
#include "device/backend.h"

namespace crenel::device {

std::string cuda_lost_reason() { return ""; }

std::string cuda_missing_reason() {
  return "built without CUDA: nvcc was not found when crenel was built";
}

int cuda_device_count() noexcept { return 0; }

std::shared_ptr<Backend> make_cuda_device(int index, GpuPart) {
  throw DeviceError(cat("cuda:", index, ": ", cuda_missing_reason()),
                    {{"device", cat("cuda:", index)}});
}

std::shared_ptr<Backend> make_dry_cuda_device(GpuPart) {
  throw DeviceError(cat("cuda:dry: ", cuda_missing_reason()), {{"device", "cuda:dry"}});
}

}  // namespace crenel::device
