// Several GPUs, of a build without nvcc: nobody has a device to call these with.
#include "crenel/core/error.h"
#include "device/several.h"

namespace crenel::device {

Road cuda_road(const Device&, const Device&) { throw DeviceError(cuda_missing_reason()); }

void cuda_spread(Stream&, const PolyView<const u32>&, std::span<const u32>,
                 std::span<const SpreadTarget>, const Meeting*) {
  throw DeviceError(cuda_missing_reason());
}

void cuda_begin_sources(PolyKernels&, Stream&, const PolyView<u32>&, const SourcesOf&, bool) {
  throw DeviceError(cuda_missing_reason());
}

void cuda_spread_sources(PolyKernels&, Stream&, const PolyView<u32>&,
                         const Prepared<rns::BaseConversion>&, std::span<const u32>,
                         std::span<const SpreadTarget>, const Meeting&, bool) {
  throw DeviceError(cuda_missing_reason());
}

bool cuda_can_spread_sources(const PolyKernels&, const SourcesOf&) {
  throw DeviceError(cuda_missing_reason());
}

bool cuda_takes_tiles(Stream&, const DeviceTable*, u32) {
  throw DeviceError(cuda_missing_reason());
}

bool cuda_can_meet(std::span<const std::shared_ptr<Stream>>) {
  throw DeviceError(cuda_missing_reason());
}

std::vector<std::unique_ptr<GraphExec>> cuda_record_together(
    std::span<const std::shared_ptr<Stream>>, bool, const std::function<void()>&) {
  throw DeviceError(cuda_missing_reason());
}

void cuda_copy_across(Stream&, void*, Stream&, const void*, std::size_t) {
  throw DeviceError(cuda_missing_reason());
}

}  // namespace crenel::device
