#include "crenel/device/link.h"

#include <cstring>

#include "device/several.h"

namespace crenel::device {
namespace {

bool on_host(const Device& device) { return device.info().kind != Kind::cuda; }

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

Road road_between(const Device& from, const Device& to) {
  if (on_host(from) && on_host(to)) return Road::within;
  if (on_host(from) || on_host(to)) return Road::host;
  return cuda_road(from, to);
}

void copy_across(Stream& to, void* target, Stream& from, const void* source, std::size_t bytes) {
  to.expect_no_capture("a copy from another device");
  from.expect_no_capture("a copy to another device");
  if (bytes == 0) return;
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

}  // namespace crenel::device
