// How loaders refuse bytes: one SerializationError with the place, what was found, what was
// expected.
#pragma once

#include <string>
#include <string_view>

#include "crenel/core/error.h"
#include "crenel/core/types.h"

namespace crenel::serialize {

inline constexpr u64 kNoOffset = ~u64{0};

/// Untrusted text made safe for a message: printable ASCII in quotes, at most 64 bytes of it.
inline std::string quote(std::string_view text) {
  static constexpr std::size_t kShown = 64;
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "'";
  for (const char c : text.substr(0, kShown)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\'' && c != '\\') {
      out += c;
    } else {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  out += text.size() > kShown ? "'..." : "'";
  return out;
}

/// Throws SerializationError with the fields where, found, expected and, when known, offset (of the
/// file, in bytes).
[[noreturn]] inline void reject(std::string where, std::string found, std::string expected,
                                u64 offset = kNoOffset) {
  std::string message = cat("cannot load ", where, ": found ", found, ", expected ", expected);
  if (offset != kNoOffset) message += cat(" (byte ", offset, ")");
  std::vector<ErrorField> fields{
      {"where", std::move(where)}, {"found", std::move(found)}, {"expected", std::move(expected)}};
  if (offset != kNoOffset) fields.push_back({"offset", offset});
  throw SerializationError(message, std::move(fields));
}

/// Throws SerializationError for what would take more memory than allowed. Fields needed and
/// max_bytes besides. `found` ends in what takes it, `purpose` says what more memory is for.
[[noreturn]] inline void reject_size(std::string where, std::string found, const char* purpose,
                                     u64 needed, u64 max_bytes) {
  found += cat(needed, " bytes of memory");
  std::string expected = cat("at most ", max_bytes, " bytes");
  // Before the throw: arguments of one call have no order, and the fields take the texts away.
  const std::string message =
      cat("cannot load ", where, ": found ", found, ", expected ", expected, " (", purpose,
          ", pass max_bytes=", needed, "; in C++, LoadLimits{", needed, "})");
  throw SerializationError(message, {{"where", std::move(where)},
                                     {"found", std::move(found)},
                                     {"expected", std::move(expected)},
                                     {"needed", needed},
                                     {"max_bytes", max_bytes}});
}

[[noreturn]] inline void reject_contents(std::string where, u64 needed, u64 max_bytes) {
  reject_size(std::move(where), "contents that take ", "to load it all the same", needed,
              max_bytes);
}

/// What it describes is not known before it was read.
[[noreturn]] inline void reject_header(u64 needed, u64 max_bytes) {
  reject_size("header", "tables of names that alone take ", "to be told of the whole", needed,
              max_bytes);
}

}  // namespace crenel::serialize
