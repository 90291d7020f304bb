// Files taken apart and forged, with checksums that are right: by their text, without the library's
// reader.
#pragma once

#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/sha256.h"
#include "crenel/core/secret_key_id.h"

namespace crenel::test {

using FileBytes = std::vector<u8>;

inline u64 payload_offset(const FileBytes& file) {
  u64 length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  return sizeof length + length;
}

/// The digits of the metadata `name` replaced by those of `digest`.
inline void put_digest(std::string& header, const std::string& name, const std::string& digits) {
  const std::string key = "\"" + name + "\":\"";
  const std::size_t at = header.find(key);
  if (at == std::string::npos) throw std::logic_error("the header has no " + name);
  header.replace(at + key.size(), digits.size(), digits);
}

/// The file of this header, padded and with its own checksum right, and payload.
inline FileBytes sealed_file(std::string header, std::span<const u8> payload) {
  header.erase(header.find_last_not_of(' ') + 1);
  header.resize((header.size() + 7) / 8 * 8, ' ');
  put_digest(header, "header_sha256", std::string(64, '0'));
  const auto* text = reinterpret_cast<const u8*>(header.data());
  put_digest(header, "header_sha256", hex(sha256({text, header.size()})));
  FileBytes file(8);
  const u64 length = header.size();
  std::memcpy(file.data(), &length, sizeof length);
  file.insert(file.end(), header.begin(), header.end());
  file.insert(file.end(), payload.begin(), payload.end());
  return file;
}

inline std::string file_header(const FileBytes& file) {
  return {file.begin() + 8, file.begin() + static_cast<std::ptrdiff_t>(payload_offset(file))};
}

/// The file with the first `from` of its header replaced by `to`.
inline FileBytes edited_file(const FileBytes& file, const std::string& from,
                             const std::string& to) {
  std::string header = file_header(file);
  const std::size_t at = header.find(from);
  if (at == std::string::npos) throw std::logic_error("the header has no " + from);
  header.replace(at, from.size(), to);
  return sealed_file(std::move(header), std::span<const u8>(file).subspan(payload_offset(file)));
}

/// The same of another secret key by name.
inline FileBytes with_secret_key_id(const FileBytes& file, const SecretKeyId& from,
                                    const std::string& to) {
  return edited_file(file, "\"secret_key_id\":\"" + from.text() + "\"",
                     "\"secret_key_id\":\"" + to + "\"");
}

/// The coefficients of an exported secret key (of either scheme), a byte each.
inline FileBytes exported_coefficients(const FileBytes& file) {
  return {file.begin() + static_cast<std::ptrdiff_t>(payload_offset(file)), file.end()};
}

/// The file of other coefficients.
inline FileBytes with_coefficients(const FileBytes& file, const FileBytes& coefficients) {
  std::string header = file_header(file);
  put_digest(header, "sha256:coefficients", hex(sha256(coefficients)));
  return sealed_file(std::move(header), coefficients);
}

/// The file with one coefficient replaced.
inline FileBytes with_coefficient(const FileBytes& file, std::size_t index, u8 value) {
  FileBytes coefficients = exported_coefficients(file);
  coefficients.at(index) = value;
  return with_coefficients(file, coefficients);
}

}  // namespace crenel::test
