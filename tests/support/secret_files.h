// Files of secret keys, taken apart and forged.
#pragma once

#include "fuzz/wire_files.h"

namespace crenel::test {

/// The coefficients of an exported secret key (of either scheme), a byte each.
inline Bytes exported_coefficients(const Bytes& file) { return payload_of(file); }

/// The file with other coefficients and right checksums.
inline Bytes with_coefficients(const Bytes& file, const Bytes& coefficients) {
  return reseal(assemble(header_of(file), coefficients));
}

/// The file with one coefficient replaced.
inline Bytes with_coefficient(const Bytes& file, std::size_t index, u8 value) {
  Bytes coefficients = exported_coefficients(file);
  coefficients.at(index) = value;
  return with_coefficients(file, coefficients);
}

/// The same, of another secret key by name.
template <class Id>
Bytes with_secret_key_id(const Bytes& file, const Id& from, const std::string& to) {
  return edit(file, "\"secret_key_id\":\"" + from.text() + "\"",
              "\"secret_key_id\":\"" + to + "\"");
}

}  // namespace crenel::test
