#include "serialize/json.h"

#include "serialize/reject.h"

namespace crenel::serialize {
namespace {

void append_utf8(std::string& out, u32 c) {
  const auto put = [&out](u32 byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6), put(0x80 | (c & 63));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12), put(0x80 | (c >> 6 & 63)), put(0x80 | (c & 63));
  } else {
    put(0xf0 | c >> 18), put(0x80 | (c >> 12 & 63)), put(0x80 | (c >> 6 & 63)),
        put(0x80 | (c & 63));
  }
}

}  // namespace

std::size_t find_invalid_utf8(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<u8>(text[i]); };
  for (std::size_t i = 0; i < text.size();) {
    const u8 lead = byte(i);
    if (lead < 0x80) {
      ++i;
      continue;
    }
    const u32 length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    if (lead < 0xc2 || lead > 0xf4 || text.size() - i < length) return i;
    // The second byte also excludes over-long forms, surrogates and values above U+10FFFF.
    const u8 low = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
    const u8 high = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
    if (byte(i + 1) < low || byte(i + 1) > high) return i;
    for (u32 k = 2; k < length; ++k)
      if ((byte(i + k) & 0xc0) != 0x80) return i;
    i += length;
  }
  return std::string_view::npos;
}

std::string json_quote(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<u8>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out += '"';
}

JsonReader::JsonReader(std::span<const u8> text, u64 file_offset)
    : text_(reinterpret_cast<const char*>(text.data()), text.size()), file_offset_(file_offset) {
  const std::size_t bad = find_invalid_utf8(text_);
  if (bad == std::string_view::npos) return;
  at_ = bad;
  fail("UTF-8 text");
}

std::string JsonReader::found() const {
  return at_end() ? "the end of the header" : quote(text_.substr(at_, 1));
}

void JsonReader::fail(const std::string& expected) const {
  reject("header", found(), expected, file_offset_ + at_);
}

void JsonReader::skip_space() {
  while (!at_end() &&
         (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r'))
    ++at_;
}

u64 JsonReader::offset() {
  skip_space();
  return file_offset_ + at_;
}

void JsonReader::open(char bracket, const char* what) {
  skip_space();
  if (at_end() || text_[at_] != bracket) fail(what);
  if (depth_ == kMaxDepth) fail(cat("at most ", kMaxDepth, " nested brackets"));
  ++at_;
  first_[depth_++] = true;
}

bool JsonReader::next(char closing) {
  skip_space();
  bool& first = first_[depth_ - 1];
  if (!at_end() && text_[at_] == closing) {
    ++at_;
    --depth_;
    return false;
  }
  if (!first) {
    if (at_end() || text_[at_] != ',') fail(cat("',' or '", closing, "'"));
    ++at_;
  }
  first = false;
  return true;
}

bool JsonReader::next_member(JsonString& key) {
  if (!next('}')) return false;
  key = string();
  skip_space();
  if (at_end() || text_[at_] != ':') fail("':'");
  ++at_;
  return true;
}

JsonString JsonReader::string() {
  skip_space();
  if (at_end() || text_[at_] != '"') fail("a string");
  ++at_;
  JsonString s;
  s.offset = file_offset_ + at_;
  for (;;) {
    std::size_t run = at_;
    while (run < text_.size() && text_[run] != '"' && text_[run] != '\\' &&
           static_cast<u8>(text_[run]) >= 0x20)
      ++run;
    s.value += text_.substr(at_, run - at_);
    at_ = run;
    if (at_end()) fail("the end of the string");
    if (text_[at_] == '"') break;
    if (text_[at_] != '\\') fail("no control character in a string");
    s.plain = false;
    escape(s.value);
  }
  ++at_;
  return s;
}

u32 JsonReader::hex4() {
  u32 value = 0;
  for (u32 i = 0; i < 4; ++i, ++at_) {
    const char c = at_end() ? '\0' : text_[at_];
    const u32 digit = c >= '0' && c <= '9'   ? static_cast<u32>(c - '0')
                      : c >= 'a' && c <= 'f' ? static_cast<u32>(c - 'a' + 10)
                      : c >= 'A' && c <= 'F' ? static_cast<u32>(c - 'A' + 10)
                                             : 16;
    if (digit == 16) fail("four hexadecimal digits");
    value = value << 4 | digit;
  }
  return value;
}

void JsonReader::escape(std::string& out) {
  static constexpr std::string_view kNames = "\"\\/bfnrt", kValues = "\"\\/\b\f\n\r\t";
  ++at_;  // the backslash
  const std::size_t simple = at_end() ? std::string_view::npos : kNames.find(text_[at_]);
  if (simple != std::string_view::npos) {
    out += kValues[simple];
    ++at_;
    return;
  }
  if (at_end() || text_[at_] != 'u') fail("an escape of JSON");
  ++at_;
  u32 c = hex4();
  if (c >= 0xd800 && c < 0xdc00 && text_.substr(at_, 2) == "\\u") {
    at_ += 2;
    const u32 low = hex4();
    if (low < 0xdc00 || low >= 0xe000) fail("the second half of a surrogate pair before this byte");
    c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
  } else if (c >= 0xd800 && c < 0xe000) {
    fail("a surrogate pair before this byte");
  }
  append_utf8(out, c);
}

u64 JsonReader::integer() {
  skip_space();
  const std::size_t begin = at_;
  u64 value = 0;
  for (; !at_end() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
    const u64 digit = static_cast<u64>(text_[at_] - '0');
    if (value > (~u64{0} - digit) / 10) fail("an integer below 2^64");
    value = value * 10 + digit;
  }
  const bool leading_zero = at_ - begin > 1 && text_[begin] == '0';
  const bool fraction = !at_end() && (text_[at_] == '.' || text_[at_] == 'e' || text_[at_] == 'E');
  if (leading_zero) at_ = begin;
  if (at_ == begin || fraction) fail("a non-negative integer without leading zeros");
  return value;
}

void JsonReader::finish() {
  while (!at_end() && text_[at_] == ' ') ++at_;
  if (!at_end()) fail("spaces up to the end of the header");
}

}  // namespace crenel::serialize
