// What a request for evaluation keys asks for.
#pragma once

#include <algorithm>
#include <set>

#include "ckks/objects.h"
#include "device/room.h"

namespace crenel::ckks {

/// Of its rotations and conjugation, without the identity.
std::set<u64> galois_elements(const Params& params, const KeyRequest& request);
/// Device bytes that staged keys within `device_bytes` take at least, of keys of `all` bytes on the
/// device, the largest of `largest`: whole keys only, so up to one less than they may.
constexpr u64 least_staged_bytes(u64 device_bytes, u64 all, u64 largest) {
  return device_bytes >= all ? all : device_bytes - std::min(device_bytes, largest);
}
/// OutOfMemoryError where the device has no room for all keys.
void expect_room_for_keys(const Context::State& context, const KeyRequest& request);

}  // namespace crenel::ckks
