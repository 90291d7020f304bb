// Keys of the bridge to bytes and back: safetensors files (docs/design/0004).
#pragma once

#include <span>
#include <vector>

#include "crenel/bridge/bridge.h"
#include "crenel/core/limits.h"

namespace crenel::bridge {

/// A complete safetensors file; uniform halves travel as seeds. StateError for keys of other
/// parameters.
std::vector<u8> to_bytes(const ckks::Context& ckks, const tfhe::Context& tfhe, const Keys& keys);
/// Validates every field against both contexts before touching data; SerializationError says what
/// is wrong and where. Nothing may change the bytes during the call. Errors of Bridge's constructor
/// for contexts that do not fit together.
Keys keys_from_bytes(const ckks::Context& ckks, const tfhe::Context& tfhe,
                     std::span<const u8> bytes, const LoadLimits& limits = {});

}  // namespace crenel::bridge
