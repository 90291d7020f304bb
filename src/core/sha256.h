// SHA-256 (FIPS 180-4): content hashes of parameters and checksums of files. Not used for secrets.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <span>
#include <string>

#include "crenel/core/types.h"

namespace crenel {

/// Incremental SHA-256.
class Sha256 {
 public:
  using Digest = std::array<u8, 32>;

  /// Appends bytes to the message.
  Sha256& update(std::span<const u8> bytes) {
    length_ += bytes.size();
    while (!bytes.empty()) {
      const std::size_t take = std::min(bytes.size(), block_.size() - filled_);
      std::copy_n(bytes.begin(), take, block_.begin() + static_cast<std::ptrdiff_t>(filled_));
      filled_ += take;
      bytes = bytes.subspan(take);
      if (filled_ == block_.size()) {
        compress();
        filled_ = 0;
      }
    }
    return *this;
  }

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
  // First 32 bits of the fractional parts of the cube roots of the first 64 primes.
  static constexpr std::array<u32, 64> kRound{
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
      0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
      0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
      0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
      0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
      0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
      0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
      0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
      0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
      0xc67178f2};

  void compress() {
    std::array<u32, 64> w;
    for (std::size_t i = 0; i < 16; ++i)
      w[i] = static_cast<u32>(block_[4 * i]) << 24 | static_cast<u32>(block_[4 * i + 1]) << 16 |
             static_cast<u32>(block_[4 * i + 2]) << 8 | block_[4 * i + 3];
    for (std::size_t i = 16; i < 64; ++i) {
      const u32 s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
      const u32 s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i < 64; ++i) {
      const u32 s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const u32 t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
      const u32 s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const u32 t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<u32, 8> add{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state_[i] += add[i];
  }

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
