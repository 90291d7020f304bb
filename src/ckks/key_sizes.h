// What a request for evaluation keys asks for.
#pragma once

#include <set>

#include "ckks/objects.h"
#include "device/room.h"

namespace crenel::ckks {

/// Of its rotations and conjugation, without the identity.
std::set<u64> galois_elements(const Params& params, const KeyRequest& request);
/// OutOfMemoryError where the device has no room for all keys.
void expect_room_for_keys(const Context::State& context, const KeyRequest& request);

}  // namespace crenel::ckks
