#include <algorithm>

#include "backends/cuda/launch.cuh"
#include "backends/cuda/peers.h"
#include "backends/cuda/poly/host/convert_view.h"
#include "backends/cuda/poly/kernels/spread.cuh"
#include "device/several.h"

namespace crenel::backend::cuda {
namespace {

using device::Road;

const CudaDevice& device_of(device::Stream& stream) {
  return static_cast<const CudaDevice&>(cuda_stream(stream).device());
}

u64 bytes_of(const ring::PolyView<const u32>& v) { return v.words() * sizeof(u32); }

// By the driver, for memory that kernels cannot write.
void copy_limbs(device::Stream& stream, const ring::PolyView<const u32>& from,
                std::span<const u32> position, const device::SpreadTarget& target) {
  if (cuda_stream(stream).dry()) return;
  const int here = device_of(stream).index(), there = device_of(*target.stream).index();
  const DeviceGuard guard(here);
  for (u32 b = 0; b < from.shape.batch; ++b)
    for (u32 c = 0; c < from.shape.components; ++c)
      for (u32 l = 0; l < from.limbs.size(); ++l)
        CRENEL_CUDA_TRY(
            cudaMemcpyPeerAsync(target.to.limb(b, c, position[l]), there, from.limb(b, c, l), here,
                                sizeof(u32) << from.shape.log_n, cuda_stream(stream).handle()));
}

}  // namespace
}  // namespace crenel::backend::cuda

namespace crenel::device {

void cuda_spread(Stream& stream, const PolyView<const u32>& from, std::span<const u32> position,
                 std::span<const SpreadTarget> targets, const Meeting* meeting) {
  using namespace crenel::backend::cuda;
  SpreadArgs args = {};
  args.limbs = from.limbs.size();
  if (meeting != nullptr) {
    args.parts = static_cast<u32>(meeting->words.size());
    args.part = meeting->part;
    std::transform(meeting->words.begin(), meeting->words.end(), args.words,
                   [](void* words) { return static_cast<u32*>(words); });
  }
  args.from = poly(from);
  args.log_n = from.shape.log_n;
  args.components = from.shape.components;
  for (u32 l = 0; l < from.limbs.size(); ++l) args.position.at[l] = static_cast<u8>(position[l]);
  const CudaDevice& here = device_of(stream);
  for (const SpreadTarget& target : targets) {
    const CudaDevice& there = device_of(*target.stream);
    const bool direct = reaches(here, there) && args.targets < kSpreadTargets;
    if (&here != &there && args.limbs != 0) {
      if (const auto account = target.stream->account()) {
        LaunchRecord record;
        record.kernel = launch_name(direct ? road(here, there) : Road::host);
        record.limbs = from.limbs.size();
        record.polys = from.shape.polys();
        record.read_bytes = record.written_bytes = bytes_of(from);
        cuda_stream(*target.stream).state(*account, std::move(record));
      }
    }
    if (!direct) {
      copy_limbs(stream, from, position, target);
      continue;
    }
    args.to[args.targets++] = poly(target.to);
  }
  if (meeting == nullptr && args.targets == 0) return;
  const auto cost = [&] {
    LaunchRecord record;
    record.kernel = "spread_limbs";
    record.work = Work::copy;
    record.limbs = from.limbs.size();
    record.polys = from.shape.polys();
    record.read_bytes = bytes_of(from);
    record.written_bytes = bytes_of(from);  // its own; the targets state what reaches them
    return record;
  };
  launch(stream, cost, spread_limbs,
         dim3(divide_up(u64(1) << args.log_n, 4 * kElementThreads), std::max(args.limbs, u32(1)),
              from.shape.polys()),
         kElementThreads, 0, args);
}

bool cuda_can_meet(std::span<const std::shared_ptr<Stream>> streams) {
  using namespace crenel::backend::cuda;
  if (streams.size() > kSpreadTargets) return false;
  for (const auto& stream : streams) {  // loaded now: that may wait for the kernels of a GPU
    if (cuda_stream(*stream).dry()) break;
    const DeviceGuard guard(device_of(*stream).index());
    cudaFuncAttributes attributes;
    CRENEL_CUDA_TRY(cudaFuncGetAttributes(&attributes, spread_limbs));
  }
  for (const auto& user : streams)
    for (const auto& owner : streams)
      if (user != owner && !reaches(device_of(*user), device_of(*owner))) return false;
  return true;
}

}  // namespace crenel::device
