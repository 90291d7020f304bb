// SHA-256 (FIPS 180-4): content hashes of parameters and checksums of files. Not used for secrets.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include "crenel/core/types.h"

namespace crenel {

/// The compression function over whole 64-byte blocks, with the processor's SHA instructions where
/// it has them: key files of gigabytes are hashed when they are written and read.
void sha256_compress(std::array<u32, 8>& state, const u8* data, std::size_t blocks);
/// The same in plain C++; the specification of the other.
void sha256_compress_portable(std::array<u32, 8>& state, const u8* data, std::size_t blocks);

/// Incremental SHA-256.
class Sha256 {
 public:
  using Digest = std::array<u8, 32>;

  /// Appends bytes to the message.
  Sha256& update(std::span<const u8> bytes);

  /// The digest of everything appended so far. The object is spent afterwards.
  Digest finish() {
    const u64 bits = length_ * 8;
    const u8 marker = 0x80, zero = 0;
    update({&marker, 1});
    while (filled_ != 56) update({&zero, 1});
    std::array<u8, 8> tail;
    for (std::size_t i = 0; i < 8; ++i) tail[i] = static_cast<u8>(bits >> (56 - 8 * i));
    update(tail);
    Digest digest;
    for (std::size_t i = 0; i < digest.size(); ++i)
      digest[i] = static_cast<u8>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return digest;
  }

 private:
  std::array<u32, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                            0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<u8, 64> block_{};
  std::size_t filled_ = 0;
  u64 length_ = 0;
};

/// SHA-256 of one message.
inline std::array<u8, 32> sha256(std::span<const u8> bytes) {
  return Sha256{}.update(bytes).finish();
}

/// Lower-case hexadecimal digits of bytes.
inline std::string hex(std::span<const u8> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const u8 byte : bytes) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

}  // namespace crenel
