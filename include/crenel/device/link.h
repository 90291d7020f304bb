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

/// Whether the parts of a device ("cuda:0+1") wait for one another inside the kernels that exchange
/// limbs, as they do by default where those reach all parts' memory, or streams wait for events: in
/// exchanges queued from now on. No bit of a result depends on it; it is there to be measured, and
/// for profilers that let one kernel run at a time. UnsupportedError for a device without parts.
void meet_inside_kernels(Device& device, bool inside);

}  // namespace crenel::device
