#include "device/room.h"

#include "core/secret_pages.h"

namespace crenel::device {

MemoryLeft Device::left() const {
  HostMemory host = host_memory();
  return {host.bytes, std::move(host.limit)};
}

namespace {

// A sum of what the system gives and what is idle here; "no limit" stays what it is.
u64 with_idle(u64 left, const Device& device) {
  u64 idle = device.pools().idle;
  if (device.in_host_memory()) idle += secret_memory().idle_bytes;
  return left > ~u64{0} - idle ? ~u64{0} : left + idle;
}

}  // namespace

u64 Device::available() const { return with_idle(left().bytes, *this); }

void ask_room(const Device& device, const Need& need, core::MemoryRequest request) {
  const bool one_memory = device.in_host_memory();
  request.bytes = need.device + (one_memory ? need.host : 0);
  if (request.bytes >= core::kAskedFrom) {
    const MemoryLeft left = device.left();
    const u64 available = with_idle(left.bytes, device);
    if (request.bytes > available)
      throw core::out_of_memory(request, available, left.limit, device.info().name);
  }
  if (one_memory || need.host < core::kAskedFrom) return;
  request.bytes = need.host;
  request.count = 0;
  request.what += " in host memory";
  core::ask_host(request);
}

}  // namespace crenel::device
