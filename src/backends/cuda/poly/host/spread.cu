#include <algorithm>
#include <cstdlib>
#include <string>

#include "backends/cuda/launch.cuh"
#include "backends/cuda/peers.h"
#include "backends/cuda/poly/host/convert_columns.h"
#include "backends/cuda/poly/host/convert_view.h"
#include "backends/cuda/poly/host/kernels.h"
#include "backends/cuda/poly/host/product_passes.h"
#include "backends/cuda/poly/host/transform_launch.h"
#include "backends/cuda/poly/kernels/column_spread.cuh"
#include "device/several.h"

namespace crenel::backend::cuda {
namespace {

using device::Road;

const CudaDevice& device_of(device::Stream& stream) {
  return static_cast<const CudaDevice&>(cuda_stream(stream).device());
}

static_assert(kNoPlace == device::kNowhere);

// Limbs that go.
u32 going(std::span<const u32> position) {
  return static_cast<u32>(std::count_if(position.begin(), position.end(),
                                        [](u32 at) { return at != device::kNowhere; }));
}

u64 bytes_of(const ring::PolyView<const u32>& v, std::span<const u32> position) {
  return u64(v.shape.polys()) * going(position) * sizeof(u32) << v.shape.log_n;
}

// By the driver, for memory that kernels cannot write.
void copy_limbs(device::Stream& stream, const ring::PolyView<const u32>& from,
                std::span<const u32> position, const device::SpreadTarget& target) {
  if (cuda_stream(stream).dry()) return;
  const int here = device_of(stream).index(), there = device_of(*target.stream).index();
  const DeviceGuard guard(here);
  for (u32 b = 0; b < from.shape.batch; ++b)
    for (u32 c = 0; c < from.shape.components; ++c)
      for (u32 l = 0; l < from.limbs.size(); ++l) {
        if (position[l] == device::kNowhere) continue;
        CRENEL_CUDA_TRY(
            cudaMemcpyPeerAsync(target.to.limb(b, c, position[l]), there, from.limb(b, c, l), here,
                                sizeof(u32) << from.shape.log_n, cuda_stream(stream).handle()));
      }
}

// All but `from`; what the direct targets do not cover is copied.
SpreadArgs spread_args(device::Stream& stream, const ring::PolyView<const u32>& from,
                       std::span<const u32> position, std::span<const device::SpreadTarget> targets,
                       const device::Meeting* meeting) {
  SpreadArgs args = {};
  args.limbs = from.limbs.size();
  if (meeting != nullptr) {
    args.parts = static_cast<u32>(meeting->words.size());
    args.part = meeting->part;
    std::transform(meeting->words.begin(), meeting->words.end(), args.words,
                   [](void* words) { return static_cast<u32*>(words); });
  }
  args.log_n = from.shape.log_n;
  args.components = from.shape.components;
  for (u32 l = 0; l < args.limbs; ++l) args.position.at[l] = static_cast<u8>(position[l]);
  const CudaDevice& here = device_of(stream);
  for (const device::SpreadTarget& target : targets) {
    const CudaDevice& there = device_of(*target.stream);
    const bool direct = reaches(here, there) && args.targets < kSpreadTargets;
    if (&here != &there && args.limbs != 0) {
      if (const auto account = target.stream->account()) {
        device::LaunchRecord record;
        record.kernel = launch_name(direct ? road(here, there) : Road::host);
        record.limbs = going(position);
        record.polys = from.shape.polys();
        record.read_bytes = record.written_bytes = bytes_of(from, position);
        cuda_stream(*target.stream).state(*account, std::move(record));
      }
    }
    if (direct)
      args.to[args.targets++] = poly(target.to);
    else
      copy_limbs(stream, from, position, target);
  }
  return args;
}

// Tiled from kMinFusedLogN on, before which no conversion takes tiles.
template <u32 LogN>
auto* last_pass_kernel(bool tiled) {
  if constexpr (LogN >= kMinFusedLogN)
    if (tiled) return column_inverse_spread_tiles<LogN>;
  return column_inverse_spread<LogN>;
}

template <u32 LogN>
void last_pass(device::Stream& stream, const TransformArgs& args, u32 limbs,
               const InverseScale* scales, const SpreadArgs& spread, bool tiled) {
  if constexpr (LogN < kMaxLogN)
    if (args.log_n != LogN) return last_pass<LogN + 1>(stream, args, limbs, scales, spread, tiled);
  constexpr u32 Bits = kColumnBits<LogN>;
  const u32 columns = tiled ? kTileColumns<Bits> : kSpreadColumns<Bits>;
  const u32 threads = tiled ? kColumnThreads<Bits> : kSpreadThreads<Bits>;
  const auto cost = [&] {
    return traffic::column_pass("column_inverse_spread", args, limbs, no_limbs(), columns);
  };
  launch(stream, cost, last_pass_kernel<LogN>(tiled),
         dim3((1u << (LogN - Bits)) / columns, args.polys, limbs), threads, 0, args, scales,
         spread);
}

// The driver then waits for each launch: the first part would wait for ever for those after it.
bool launches_block() {
  const char* set = std::getenv("CUDA_LAUNCH_BLOCKING");
  return set != nullptr && set != std::string("0") && *set != 0;
}

// On the current device, now: to load a kernel may wait for others of a GPU.
template <u32 LogN>
void load_kernels() {
  cudaFuncAttributes attributes;
  if constexpr (LogN == kMinFastLogN)
    CRENEL_CUDA_TRY(cudaFuncGetAttributes(&attributes, spread_limbs));
  for (const bool tiled : {false, true})
    CRENEL_CUDA_TRY(cudaFuncGetAttributes(&attributes, last_pass_kernel<LogN>(tiled)));
  if constexpr (LogN < kMaxLogN) load_kernels<LogN + 1>();
}

}  // namespace
}  // namespace crenel::backend::cuda

namespace crenel::device {

void cuda_spread(Stream& stream, const PolyView<const u32>& from, std::span<const u32> position,
                 std::span<const SpreadTarget> targets, const Meeting* meeting) {
  using namespace crenel::backend::cuda;
  SpreadArgs args = spread_args(stream, from, position, targets, meeting);
  if (meeting == nullptr && args.targets == 0) return;
  args.from = poly(from);
  const auto cost = [&] {
    LaunchRecord record;
    record.kernel = "spread_limbs";
    record.work = Work::copy;
    record.limbs = going(position);
    record.polys = from.shape.polys();
    record.read_bytes = bytes_of(from, position);
    record.written_bytes = record.read_bytes;  // its own; the targets state what reaches them
    return record;
  };
  launch(stream, cost, spread_limbs,
         dim3(divide_up(u64(1) << args.log_n, 4 * kElementThreads), std::max(args.limbs, u32(1)),
              from.shape.polys()),
         kElementThreads, 0, args);
}

bool cuda_can_spread_sources(const PolyKernels& kernels, const SourcesOf& of) {
  using namespace crenel::backend::cuda;
  return static_cast<const CudaPolyKernels&>(kernels).fast() &&
         has_passes(of.sum, of.in.limbs.size());
}

void cuda_begin_sources(PolyKernels& kernels, Stream& stream, const PolyView<u32>& workspace,
                        const SourcesOf& of, bool tiled) {
  using namespace crenel::backend::cuda;
  const RingTables& tables = static_cast<const CudaPolyKernels&>(kernels).tables();
  TransformArgs args =
      transform_args(tables, false, poly(workspace), first_rows(of), workspace.limbs);
  args.log_blocked = tiled ? log_block_columns(args.log_n) : 0;
  launch_row_inverse(stream, args, workspace.limbs.size(), rows_of(kernels.ring(), of));
}

void cuda_spread_sources(PolyKernels& kernels, Stream& stream, const PolyView<u32>& workspace,
                         const Prepared<rns::BaseConversion>& scales, std::span<const u32> position,
                         std::span<const SpreadTarget> targets, const Meeting& meeting,
                         bool tiled) {
  using namespace crenel::backend::cuda;
  const RingTables& tables = static_cast<const CudaPolyKernels&>(kernels).tables();
  TransformArgs args =
      transform_args(tables, false, poly(workspace), workspace.shape, workspace.limbs);
  args.early = starts_conversion_early(stream);
  args.log_blocked = tiled ? log_block_columns(args.log_n) : 0;
  last_pass<kMinFastLogN>(stream, in_place(args), workspace.limbs.size(),
                          scales.on_device<ConversionTables>().inverse,
                          spread_args(stream, workspace, position, targets, &meeting), tiled);
}

bool cuda_takes_tiles(Stream& stream, const DeviceTable* conversions, u32 log_n) {
  using namespace crenel::backend::cuda;
  const auto* tables = dynamic_cast<const ConversionTables*>(conversions);
  return tables != nullptr && takes_tiles(stream, *tables, log_n);
}

bool cuda_can_meet(std::span<const std::shared_ptr<Stream>> streams) {
  using namespace crenel::backend::cuda;
  if (streams.size() > kSpreadTargets || launches_block()) return false;
  for (const auto& stream : streams) {
    if (cuda_stream(*stream).dry()) break;
    const DeviceGuard guard(device_of(*stream).index());
    load_kernels<kMinFastLogN>();
  }
  for (const auto& user : streams)
    for (const auto& owner : streams)
      if (user != owner && !reaches(device_of(*user), device_of(*owner))) return false;
  return true;
}

}  // namespace crenel::device
