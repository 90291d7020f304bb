// The public name of a secret key, carried by all that was made with it.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "crenel/core/types.h"

namespace crenel {

/// 128 random bits, drawn from the operating system with a secret key and independent of it. Keys,
/// and ciphertexts that only that secret key decrypts, carry it; "none" is carried by what needs no
/// secret key: plaintexts, known messages without noise (tfhe::Evaluator::trivial), empty key sets.
/// Public: it tells nothing about the key, and that two objects belong to the same one
/// (SECURITY.md).
class SecretKeyId {
 public:
  using Bytes = std::array<u8, 16>;

  constexpr SecretKeyId() = default;  ///< none
  constexpr explicit SecretKeyId(const Bytes& bytes) : bytes_(bytes) {}

  /// Whether it is of no secret key, and its 16 bytes (0 for none).
  bool is_none() const { return *this == SecretKeyId(); }
  const Bytes& bytes() const { return bytes_; }
  /// 32 lower-case hexadecimal digits, or "none".
  std::string text() const;
  /// What text() gives; nothing for any other text.
  static std::optional<SecretKeyId> from_text(std::string_view text);

  friend bool operator==(const SecretKeyId&, const SecretKeyId&) = default;
  /// Any strict order, for sets. Not <=>, which older libc++ does not have for arrays.
  friend bool operator<(const SecretKeyId& a, const SecretKeyId& b) { return a.bytes_ < b.bytes_; }

 private:
  Bytes bytes_{};
};

/// StateError unless both name one secret key or one of them is none; `what` ("ciphertext") has
/// `found`, `other` ("these keys") has `expected`: both are in the message and in the fields
/// `found` and `expected`.
void expect_same_secret_key(const SecretKeyId& found, const SecretKeyId& expected,
                            std::string_view what, std::string_view other);

/// Of two that agree (expect_same_secret_key) the one that is not none.
inline SecretKeyId either(const SecretKeyId& a, const SecretKeyId& b) {
  return a.is_none() ? b : a;
}

}  // namespace crenel
