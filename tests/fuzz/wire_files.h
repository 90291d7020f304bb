// The checked-in wire files, and edits of them.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>

#include "fuzz/serialize_entry.h"

namespace crenel::test {

using Bytes = std::vector<u8>;

inline Bytes read_bytes(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

inline std::filesystem::path wire_folder() {
  return std::filesystem::path(CRENEL_TEST_DATA) / "golden" / "wire";
}

/// tests/golden/wire/<name>.safetensors
inline Bytes wire_file(const std::string& name) {
  return read_bytes(wire_folder() / (name + ".safetensors"));
}

/// Names of all of them.
inline const std::vector<std::string>& wire_names() {
  static const std::vector<std::string> names{
      "ciphertext", "ciphertext_seeded",    "plaintext",  "public_key", "evaluation_keys",
      "params",     "evaluation_keys_none", "secret_key",
  };
  return names;
}

/// The kind of the file `name`: the name without what follows the kind.
inline std::string kind_of(const std::string& name) {
  for (const auto& kind : wire_kinds())
    if (name.starts_with(kind)) return kind;
  return "params";
}

inline u64 header_length(const Bytes& bytes) {
  u64 length = 0;
  std::memcpy(&length, bytes.data(), 8);
  return length;
}

inline std::string header_of(const Bytes& bytes) {
  return std::string(bytes.begin() + 8,
                     bytes.begin() + 8 + static_cast<long>(header_length(bytes)));
}

inline Bytes payload_of(const Bytes& bytes) {
  return Bytes(bytes.begin() + 8 + static_cast<long>(header_length(bytes)), bytes.end());
}

/// A file of this header (padded here) and payload; checksums as the text says.
inline Bytes assemble(std::string header, const Bytes& payload) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const u64 length = header.size();
  Bytes out(8);
  std::memcpy(out.data(), &length, 8);
  out.insert(out.end(), header.begin(), header.end());
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

/// The file with the first `from` of its header replaced by `to`, checksums right where the
/// container can still be parsed.
inline Bytes edit(const Bytes& bytes, const std::string& from, const std::string& to) {
  std::string header = header_of(bytes);
  const std::size_t at = header.find(from);
  if (at == std::string::npos) throw std::logic_error("the header has no " + from);
  header.replace(at, from.size(), to);
  const Bytes out = assemble(header, payload_of(bytes));
  const Bytes sealed = reseal(out);
  return sealed.empty() ? out : sealed;
}

}  // namespace crenel::test
