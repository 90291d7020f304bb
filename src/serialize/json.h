// The JSON of safetensors headers: objects, arrays, strings, non-negative integers; nothing else.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "crenel/core/types.h"

namespace crenel::serialize {

/// A string with the place of its raw characters (between the quotes) in the file.
struct JsonString {
  std::string value;
  u64 offset = 0;
  bool plain = true;  ///< written without escapes: value is the raw text
};

/// Pull parser: the caller asks for what must come next, so hostile input can neither nest deeper
/// than the caller does nor make it allocate more than the text it sent. Every refusal is a
/// SerializationError with the exact byte of the file.
class JsonReader {
 public:
  static constexpr u32 kMaxDepth = 4;

  /// `text` starts at byte `file_offset` of the file. Throws when it is not UTF-8.
  JsonReader(std::span<const u8> text, u64 file_offset);

  void open_object() { open('{', "an object"); }
  /// The next key of the innermost object; false when the object ended (it is then closed).
  bool next_member(JsonString& key);
  void open_array() { open('[', "an array"); }
  /// Whether the innermost array has another element; false closes it.
  bool next_element() { return next(']'); }
  JsonString string();
  /// An integer in [0, 2^64).
  u64 integer();
  /// Nothing but spaces may follow.
  void finish();
  /// Byte of the file that is read next, white space skipped.
  u64 offset();

 private:
  void open(char bracket, const char* what);
  bool next(char closing);
  void skip_space();
  [[noreturn]] void fail(const std::string& expected) const;
  bool at_end() const { return at_ == text_.size(); }
  std::string found() const;
  u32 hex4();
  void escape(std::string& out);

  std::string_view text_;
  std::size_t at_ = 0;
  u64 file_offset_;
  u32 depth_ = 0;
  std::array<bool, kMaxDepth> first_{};  ///< no element of this bracket was read yet
};

/// Offset of the first byte that is not UTF-8 (RFC 3629: shortest forms, no surrogates, up to
/// U+10FFFF), or npos.
std::size_t find_invalid_utf8(std::string_view text);

/// The JSON string literal of UTF-8 text, quotes included.
std::string json_quote(std::string_view text);

}  // namespace crenel::serialize
