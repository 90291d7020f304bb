#include "crenel/core/secret_key_id.h"

#include "core/sha256.h"
#include "crenel/core/error.h"

namespace crenel {
namespace {

constexpr std::string_view kNone = "none";
constexpr std::string_view kDigits = "0123456789abcdef";

}  // namespace

std::string SecretKeyId::text() const { return is_none() ? std::string(kNone) : hex(bytes_); }

std::optional<SecretKeyId> SecretKeyId::from_text(std::string_view text) {
  if (text == kNone) return SecretKeyId();
  Bytes bytes{};
  if (text.size() != 2 * bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto digit = kDigits.find(text[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    bytes[i / 2] = static_cast<u8>(bytes[i / 2] << 4 | digit);
  }
  const SecretKeyId id(bytes);
  if (id.is_none()) return std::nullopt;  // one text an id
  return id;
}

void expect_same_secret_key(const SecretKeyId& found, const SecretKeyId& expected,
                            std::string_view what, std::string_view other) {
  if (found == expected || found.is_none() || expected.is_none()) return;
  throw StateError(cat(what, " of secret key ", found.text(), ", ", other, " of secret key ",
                       expected.text(), "; expected those of one client"),
                   {{"found", found.text()}, {"expected", expected.text()}});
}

}  // namespace crenel
