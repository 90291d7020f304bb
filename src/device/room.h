// Whether there is room for all that a request will take, asked before any of it is taken.
#pragma once

#include "core/host_memory.h"
#include "crenel/device/device.h"

namespace crenel::device {

/// Bytes that a request takes at a time; of a device that computes in host memory both are host
/// memory.
struct Need {
  u64 device = 0;
  u64 host = 0;
};

/// OutOfMemoryError where the need is more than Device::available(), or more than the host has.
/// Whoever asks states what is surely needed: less than what will be taken, never more.
void ask_room(const Device& device, const Need& need, core::MemoryRequest request);

/// ask_room() for what is large; `describe()` gives the request's words.
template <class Describe>
void expect_room(const Device& device, const Need& need, Describe describe) {
  if (need.device < core::kAskedFrom && need.host < core::kAskedFrom) return;
  ask_room(device, need, describe());
}

/// The same of work on a stream. Inside a recording nothing is asked: what it takes was sized
/// before.
template <class Describe>
void expect_room(const Stream& stream, const Need& need, Describe describe) {
  if (need.device < core::kAskedFrom && need.host < core::kAskedFrom) return;
  if (!stream.capturing()) ask_room(stream.device(), need, describe());
}

}  // namespace crenel::device
