// The CUDA factories of a build without nvcc.
#include "crenel/core/error.h"
#include "device/backend.h"
#include "device/dry_models.h"

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

std::shared_ptr<Backend> make_dry_cuda_device(const DryModel& model, std::optional<int> index,
                                              GpuPart part) {
  const std::string name = dry_name(model, index) + part.text();
  throw DeviceError(cat(name, ": ", cuda_missing_reason()), {{"device", name}});
}

}  // namespace crenel::device
