// One run of the loaders of TFHE on any bytes, for the fuzzer and the unit tests.
#pragma once

#include "crenel/tfhe/serialize.h"
#include "fuzz/serialize_entry.h"

namespace crenel::test {

inline const tfhe::Context& tfhe_wire_context() {
  static const tfhe::Context context(tfhe::Params::preset("toy-lut4", true), "ref");
  return context;
}

inline const std::vector<std::string>& tfhe_wire_kinds() {
  static const std::vector<std::string> kinds{
      "tfhe_ciphertext", "tfhe_integers", "tfhe_evaluation_keys", "tfhe_secret_key", "tfhe_params"};
  return kinds;
}

/// Gives the bytes to the loader of `kind`. Anything but a SerializationError is let through.
inline LoadOutcome load_tfhe_kind(const std::string& kind, std::span<const u8> bytes) {
  const tfhe::Context& context = tfhe_wire_context();
  using Bytes = std::span<const u8>;
  tfhe::ArrayInfo info;
  const auto save = [&](const auto& array) { return tfhe::to_bytes(context, array, info); };
  if (kind == "tfhe_ciphertext")
    return try_load(
        bytes, [&](Bytes b) { return tfhe::ciphertext_from_bytes(context, b, &info); }, save);
  if (kind == "tfhe_integers")
    return try_load(
        bytes, [&](Bytes b) { return tfhe::integers_from_bytes(context, b, &info); }, save);
  if (kind == "tfhe_evaluation_keys")
    return try_load(
        bytes, [&](Bytes b) { return tfhe::evaluation_keys_from_bytes(context, b); },
        [&](const tfhe::EvaluationKeys& keys) { return tfhe::to_bytes(context, keys); });
  if (kind == "tfhe_secret_key")
    return try_load(
        bytes, [&](Bytes b) { return tfhe::Client::import_secret_key(context, b); },
        [](const tfhe::Client& client) { return client.export_secret_key(); });
  return try_load(
      bytes, [&](Bytes b) { return tfhe::params_from_bytes(b, true); },
      [](const tfhe::Params& params) { return tfhe::to_bytes(params); });
}

/// Every loader on the bytes as they are and resealed. Returns how many accepted them; throws
/// anything but SerializationError when one misbehaves.
inline u32 run_tfhe_entry(std::span<const u8> bytes) {
  u32 accepted = 0;
  for (const auto& kind : tfhe_wire_kinds()) accepted += load_tfhe_kind(kind, bytes).loaded;
  const std::vector<u8> sealed = reseal(bytes);
  if (!sealed.empty() && !std::equal(sealed.begin(), sealed.end(), bytes.begin(), bytes.end()))
    for (const auto& kind : tfhe_wire_kinds()) accepted += load_tfhe_kind(kind, sealed).loaded;
  return accepted;
}

}  // namespace crenel::test
