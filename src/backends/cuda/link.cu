// Copies between GPUs: the driver's own, which go over NVLink or PCIe where a GPU may read the
// other's memory, and through the host where it may not.
#include "backends/cuda/peers.h"
#include "device/several.h"

namespace crenel::backend::cuda {
namespace {

using device::Road;

const CudaDevice& cuda_device(const device::Device& device) {
  return static_cast<const CudaDevice&>(device);
}

bool may_reach(int from, int to) {
  int can = 0;
  CRENEL_CUDA_TRY(cudaDeviceCanAccessPeer(&can, from, to));
  return can != 0;
}

}  // namespace

Road road(const CudaDevice& from, const CudaDevice& to) {
  if (from.dry() != to.dry())
    throw UnsupportedError(cat("a copy from ", from.info().name, " to ", to.info().name,
                               ": a model of a GPU computes nothing, and holds no data"),
                           {{"device", from.dry() ? from.info().name : to.info().name}});
  if (from.dry()) return &from == &to ? Road::within : Road::peer;
  from.expect_own_process();
  to.expect_own_process();
  if (from.index() == to.index()) return Road::within;
  return may_reach(to.index(), from.index()) ? Road::peer : Road::host;
}

bool reaches(const CudaDevice& user, const CudaDevice& owner) {
  if (user.knows_peer(owner.index())) return true;
  const Road way = road(owner, user);
  if (way == Road::host) return false;
  if (way == Road::peer && !user.dry()) {
    const DeviceGuard guard(user.index());
    const cudaError_t status = cudaDeviceEnablePeerAccess(owner.index(), 0);
    if (status != cudaSuccess) {
      static_cast<void>(cudaGetLastError());
      if (status != cudaErrorPeerAccessAlreadyEnabled) fail(status, "cudaDeviceEnablePeerAccess");
    }
    user.know_peer(owner.index());
  }
  return true;
}

const char* launch_name(Road road) {
  if (road == Road::within) return "copy_within";
  return road == Road::peer ? "copy_peer" : "copy_host";
}

namespace {

void copy(CudaStream& to, void* target, CudaStream& from, const void* source, std::size_t bytes) {
  const auto &there = cuda_device(to.device()), &here = cuda_device(from.device());
  const Road way = road(here, there);
  if (const auto account = to.account()) {
    device::LaunchRecord record;
    record.kernel = launch_name(way);
    record.read_bytes = record.written_bytes = bytes;
    to.state(*account, std::move(record));
  }
  if (to.dry()) return;
  const auto order = device::meeting_order();
  device::Stream &after = to, &before = from;
  after.wait_for(before);
  static_cast<void>(reaches(there, here));
  {
    const DeviceGuard guard(there.index());
    CRENEL_CUDA_TRY(
        cudaMemcpyPeerAsync(target, there.index(), source, here.index(), bytes, to.handle()));
  }
  before.wait_for(after);
}

}  // namespace
}  // namespace crenel::backend::cuda

namespace crenel::device {

Road cuda_road(const Device& from, const Device& to) {
  using namespace crenel::backend::cuda;
  return road(cuda_device(from), cuda_device(to));
}

void cuda_copy_across(Stream& to, void* target, Stream& from, const void* source,
                      std::size_t bytes) {
  using namespace crenel::backend::cuda;
  copy(cuda_stream(to), target, cuda_stream(from), source, bytes);
}

}  // namespace crenel::device
