#include "device/apart.h"

#include "crenel/core/error.h"
#include "crenel/core/watch.h"
#include "device/several.h"

namespace crenel::device {
namespace {

DividedStream& grouped(Stream& stream) {
  auto* divided = dynamic_cast<DividedStream*>(&stream);
  if (divided == nullptr || divided->groups() < 2)
    throw StateError(cat("groups of parts of device ", stream.device().info().name,
                         ", expected a device of an even number of parts"),
                     {{"device", stream.device().info().name}});
  return *divided;
}

}  // namespace

thread_local constinit EntriesApart::Apart EntriesApart::apart_;

EntriesApart::EntriesApart(const Stream& stream) : before_(apart_) {
  apart_ = {&stream, watch::active()};
}

bool EntriesApart::on(const Stream& stream) {
  const bool shielded = apart_.watched && !watch::active();
  return apart_.stream == &stream && !shielded;
}

u32 entry_groups(const Stream& stream) {
  const auto* divided = dynamic_cast<const DividedStream*>(&stream);
  return divided == nullptr ? 1 : divided->groups();
}

void regroup(Stream& stream, const PolyView<u32>& to, const PolyView<const u32>& from) {
  grouped(stream).regroup(to, from);
}

Buffer share_between_groups(Stream& stream, const void* limbs) {
  return grouped(stream).share(limbs);
}

}  // namespace crenel::device
