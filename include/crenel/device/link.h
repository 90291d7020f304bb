// From the memory of one device to that of another.
#pragma once

#include "crenel/device/device.h"

namespace crenel::device {

/// The way of bytes between two devices.
enum class Road : u8 {
  within,  ///< one memory: the host's, or that of one GPU
  peer,    ///< from GPU to GPU, over NVLink or PCIe
  host,    ///< through host memory: between a GPU and the host, and between GPUs that cannot reach
           ///< each other's memory
};
/// "within", "peer", "host".
const char* name_of(Road road);

/// Nothing is copied to find out. UnsupportedError between a GPU and a model of one (cuda:dry).
Road road_between(const Device& from, const Device& to);

/// Copies behind what both streams have queued so far: `to` waits for `from` before, and `from` for
/// `to` afterwards, so that the source may be freed when the call returns. Stated to the account of
/// `to` as "copy_within", "copy_peer" or "copy_host". Between a GPU and the host the call waits for
/// the data. Not capturable (StateError). Models of GPUs copy nothing, and state it.
void copy_across(Stream& to, void* target, Stream& from, const void* source, std::size_t bytes);

/// How the parts of a device ("cuda:0+1") give one another the limbs that base conversions need.
enum class ExchangeBy : u8 {
  events,      ///< a kernel stores them to all parts, streams wait for events before and after
  kernels,     ///< a kernel stores them, and ends when those of the other parts have come
  transforms,  ///< so does the last pass of the transform that makes them, where there is one
};
/// "events", "kernels", "transforms".
const char* name_of(ExchangeBy way);
/// ParameterError for another name.
ExchangeBy exchange_of(const std::string& name);
/// Of exchanges queued from now on; parts that cannot reach one another's memory use events anyway.
/// No bit of a result depends on it: it is there to be measured, and `events` for profilers that
/// let one kernel run at a time. UnsupportedError for a device without parts.
void exchange_by(Device& device, ExchangeBy way);

}  // namespace crenel::device
