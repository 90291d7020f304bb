#include "crenel/device/link.h"

#include <algorithm>
#include <cstring>

#include "crenel/core/error.h"
#include "device/several.h"

namespace crenel::device {
namespace {

bool on_host(const Device& device) { return device.info().kind != Kind::cuda; }

// Piece by piece of the target, or else of the source.
bool copy_divided(Stream& to, void* target, Stream& from, const void* source, std::size_t bytes) {
  if (auto* divided = dynamic_cast<DividedStream*>(&to)) {
    divided->for_pieces(target, bytes, true,
                        [&](Stream& part, void* there, std::size_t at, std::size_t size) {
                          copy_across(part, there, from, static_cast<const u8*>(source) + at, size);
                        });
    return true;
  }
  if (auto* divided = dynamic_cast<DividedStream*>(&from)) {
    divided->for_pieces(source, bytes, false,
                        [&](Stream& part, void* there, std::size_t at, std::size_t size) {
                          copy_across(to, static_cast<u8*>(target) + at, part, there, size);
                        });
    return true;
  }
  return false;
}

Road slower(Road a, Road b) { return std::max(a, b); }

}  // namespace

const char* name_of(Road road) {
  switch (road) {
    case Road::within:
      return "within";
    case Road::peer:
      return "peer";
    case Road::host:
      return "host";
  }
  return "unknown";
}

// Of devices of several parts the slowest way that some bytes take.
Road road_between(const Device& from, const Device& to) {
  const auto sources = from.parts(), targets = to.parts();
  if (!sources.empty() || !targets.empty()) {
    Road road = Road::within;
    for (const auto& part : sources) road = slower(road, road_between(*part, to));
    if (sources.empty())
      for (const auto& part : targets) road = slower(road, road_between(from, *part));
    return road;
  }
  if (on_host(from) && on_host(to)) return Road::within;
  if (on_host(from) || on_host(to)) return Road::host;
  return cuda_road(from, to);
}

void copy_across(Stream& to, void* target, Stream& from, const void* source, std::size_t bytes) {
  to.expect_no_capture("a copy from another device");
  from.expect_no_capture("a copy to another device");
  if (bytes == 0 || copy_divided(to, target, from, source, bytes)) return;
  const Device &there = to.device(), &here = from.device();
  if (!on_host(here) && !on_host(there)) return cuda_copy_across(to, target, from, source, bytes);
  there.expect_own_process();
  here.expect_own_process();
  if (!on_host(here)) {
    to.synchronize();  // what still reads the target's memory
    return from.copy_out(target, source, bytes);
  }
  from.synchronize();
  if (!on_host(there)) return to.copy_in(target, source, bytes);
  to.synchronize();
  std::memcpy(target, source, bytes);
}

void spread(Stream& stream, const PolyView<const u32>& from, std::span<const u32> position,
            std::span<const SpreadTarget> targets, const Meeting* meeting) {
  if (!on_host(stream.device())) return cuda_spread(stream, from, position, targets, meeting);
  const std::size_t bytes = sizeof(u32) << from.shape.log_n;
  for (const SpreadTarget& target : targets)
    for (u32 b = 0; b < from.shape.batch; ++b)
      for (u32 c = 0; c < from.shape.components; ++c)
        for (u32 l = 0; l < from.limbs.size(); ++l) {
          if (position[l] == kNowhere) continue;
          std::memcpy(target.to.limb(b, c, position[l]), from.limb(b, c, l), bytes);
        }
}

void begin_sources(PolyKernels& kernels, Stream& stream, const PolyView<u32>& workspace,
                   const SourcesOf& of, bool tiled) {
  cuda_begin_sources(kernels, stream, workspace, of, tiled);
}

void spread_sources(PolyKernels& kernels, Stream& stream, const PolyView<u32>& workspace,
                    const Prepared<rns::BaseConversion>& scales, std::span<const u32> position,
                    std::span<const SpreadTarget> targets, const Meeting& meeting, bool tiled) {
  cuda_spread_sources(kernels, stream, workspace, scales, position, targets, meeting, tiled);
}

bool can_spread_sources(const PolyKernels& kernels, const Stream& stream, const SourcesOf& of) {
  return !on_host(stream.device()) && cuda_can_spread_sources(kernels, of);
}

bool takes_tiles(Stream& stream, const DeviceTable* conversions, u32 log_n) {
  return cuda_takes_tiles(stream, conversions, log_n);
}

// Operations of the host are done when they return: nobody waits.
bool can_meet(std::span<const std::shared_ptr<Stream>> streams) {
  return on_host(streams[0]->device()) || cuda_can_meet(streams);
}

const char* name_of(ExchangeBy way) {
  constexpr const char* kNames[] = {"events", "kernels", "transforms"};
  return kNames[u32(way)];
}

ExchangeBy exchange_of(const std::string& name) {
  for (const auto way : {ExchangeBy::events, ExchangeBy::kernels, ExchangeBy::transforms})
    if (name == name_of(way)) return way;
  throw ParameterError(cat("exchange by \"", name, "\", expected events, kernels or transforms"),
                       {{"exchange", name}, {"expected", "events, kernels or transforms"}});
}

void exchange_by(Device& device, ExchangeBy way) {
  auto* divided = dynamic_cast<DividedDevice*>(&device);
  if (divided == nullptr)
    throw UnsupportedError(
        cat("exchanges of the parts of device ", device.info().name, ", which has no parts"),
        {{"device", device.info().name}, {"expected", "a device of several parts"}});
  divided->exchange_by(way);
}

std::unique_lock<ForkMutex> meeting_order() {
  static ForkMutex mutex;
  return std::unique_lock(mutex);
}

std::vector<std::unique_ptr<GraphExec>> record_together(
    std::span<const std::shared_ptr<Stream>> streams, bool each,
    const std::function<void()>& work) {
  if (on_host(streams[0]->device())) return {};
  return cuda_record_together(streams, each, work);
}

}  // namespace crenel::device
