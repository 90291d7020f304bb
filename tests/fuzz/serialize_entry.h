// One run of the serialisation fuzzer; libFuzzer and the corpus test share it.
#pragma once

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/sha256.h"
#include "crenel/ckks/serialize.h"
#include "crenel/core/error.h"
#include "fuzz/wire_params.h"
#include "serialize/safetensors.h"

namespace crenel::test {

/// The file with every checksum made right, so that mutations reach the checks behind the
/// checksums; empty when the container cannot be parsed.
inline std::vector<u8> reseal(std::span<const u8> bytes) {
  std::vector<u8> out(bytes.begin(), bytes.end());
  const auto put = [&out](const serialize::JsonString& at, const std::string& digits) {
    if (at.plain && at.value.size() == digits.size())
      std::memcpy(out.data() + at.offset, digits.data(), digits.size());
  };
  try {
    const serialize::SafetensorsFile file(bytes);
    for (const auto& [name, value] : file.metadata()) {
      if (!name.starts_with("sha256:")) continue;
      const auto tensor = file.tensors().find(name.substr(7));
      if (tensor != file.tensors().end()) put(value, hex(sha256(file.data(tensor->second))));
    }
    const auto header = file.metadata().find("header_sha256");
    if (header == file.metadata().end()) return out;
    put(header->second, std::string(64, '0'));
    put(header->second, hex(sha256(std::span(out).subspan(8, file.header().size()))));
  } catch (const SerializationError&) {
    return {};
  }
  return out;
}

/// What a loader did with bytes.
struct LoadOutcome {
  bool loaded = false;
  std::string where;  ///< field "where" of the refusal
  std::string message;
};

/// Loads that were accepted since the program began: how often a fuzzer gets behind the checks.
inline u64& accepted_loads() {
  static u64 count = 0;
  return count;
}

template <class Load, class Save>
LoadOutcome try_load(std::span<const u8> bytes, const Load& load, const Save& save) {
  try {
    const auto object = load(bytes);
    const std::vector<u8> once = save(object);
    if (save(load(once)) != once) throw std::logic_error("save(load(x)) differs from x");
    ++accepted_loads();
    return {true, "", ""};
  } catch (const SerializationError& error) {
    if (error.field("where").empty() || error.field("found").empty() ||
        error.field("expected").empty())
      throw std::logic_error(std::string("refusal without fields: ") + error.what());
    return {false, error.field("where"), error.what()};
  }
}

/// Gives the bytes to the loader of `kind`. Anything but a SerializationError is let through.
inline LoadOutcome load_kind(const std::string& kind, std::span<const u8> bytes) {
  const ckks::Context& context = wire_context();
  const auto save = [&](const auto& object) { return ckks::to_bytes(context, object); };
  if (kind == "ciphertext")
    return try_load(
        bytes, [&](std::span<const u8> b) { return ckks::ciphertext_from_bytes(context, b); },
        save);
  if (kind == "plaintext")
    return try_load(
        bytes, [&](std::span<const u8> b) { return ckks::plaintext_from_bytes(context, b); }, save);
  if (kind == "evaluation_keys")
    return try_load(
        bytes, [&](std::span<const u8> b) { return ckks::evaluation_keys_from_bytes(context, b); },
        save);
  if (kind == "public_key")
    return try_load(
        bytes, [&](std::span<const u8> b) { return ckks::public_key_from_bytes(context, b); },
        save);
  if (kind == "secret_key")
    return try_load(
        bytes, [&](std::span<const u8> b) { return ckks::Client::import_secret_key(context, b); },
        [](const ckks::Client& client) { return client.export_secret_key(); });
  return try_load(
      bytes, [&](std::span<const u8> b) { return ckks::params_from_bytes(b, true); },
      [](const ckks::Params& params) { return ckks::to_bytes(params); });
}

inline const std::vector<std::string>& wire_kinds() {
  static const std::vector<std::string> kinds{"ciphertext", "plaintext",  "evaluation_keys",
                                              "public_key", "secret_key", "params"};
  return kinds;
}

/// Every loader on the bytes as they are and resealed. Returns how many accepted them; throws
/// anything but SerializationError when one misbehaves.
inline u32 run_serialize_entry(std::span<const u8> bytes) {
  u32 accepted = 0;
  for (const auto& kind : wire_kinds()) accepted += load_kind(kind, bytes).loaded;
  const std::vector<u8> sealed = reseal(bytes);
  if (!sealed.empty() && !std::equal(sealed.begin(), sealed.end(), bytes.begin(), bytes.end()))
    for (const auto& kind : wire_kinds()) accepted += load_kind(kind, sealed).loaded;
  return accepted;
}

}  // namespace crenel::test
