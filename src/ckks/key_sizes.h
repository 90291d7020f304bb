// What a request for evaluation keys asks for.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "ckks/objects.h"
#include "device/room.h"

namespace crenel::ckks {

/// Of its rotations and conjugation, without the identity: the highest level of each,
/// rlwe::SwitchKey::kAny for all. ParameterError for levels that the parameters do not have.
std::map<u64, u32> galois_levels(const Params& params, const KeyRequest& request);
/// The same of relinearisation.
u32 relinearisation_level(const Params& params, const KeyRequest& request);
/// Every key of a request that is none of encapsulation, with its level (SwitchKey::max_level), in
/// the order in which they are made.
std::vector<std::pair<rlwe::KeyId, u32>> switch_keys(const Params& params,
                                                     const KeyRequest& request);
/// One of them.
rlwe::SwitchKey make_switch_key(rlwe::SecretKey& secret, rlwe::KeyId id, u32 level);
/// Device bytes that staged keys within `device_bytes` take at least, of keys of `all` bytes on the
/// device, the largest of `largest`: whole keys only, so up to one less than they may.
constexpr u64 least_staged_bytes(u64 device_bytes, u64 all, u64 largest) {
  return device_bytes >= all ? all : device_bytes - std::min(device_bytes, largest);
}
/// Elements of the keys that lead back from the sparse secret, ascending. ParameterError without
/// encapsulation.
std::vector<u64> turned_elements(const Params& params, const KeyRequest& request);
/// ParameterError unless encapsulation is secure: the one sample under the ephemeral sparse secret
/// has modulus q0 P', which must be small enough for 128 bits.
void require_secure_encapsulation(const Params& params, const rlwe::RingContext& ring);
/// OutOfMemoryError where the device has no room for all keys.
void expect_room_for_keys(const Context::State& context, const KeyRequest& request);

}  // namespace crenel::ckks
