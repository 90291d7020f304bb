#include "core/sha256.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace crenel {
namespace {

std::span<const u8> bytes(std::string_view text) {
  return {reinterpret_cast<const u8*>(text.data()), text.size()};
}

// Vectors of FIPS 180-4 and of the NIST example files.
TEST(Sha256, KnownVectors) {
  EXPECT_EQ(hex(sha256(bytes(""))),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex(sha256(bytes("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex(sha256(bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hex(sha256(bytes(std::string(1000000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesGiveTheSameDigest) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (std::size_t length : {0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 128, 300}) {
    const std::string_view message = std::string_view(text).substr(0, length);
    for (std::size_t piece : {1, 3, 64, 100}) {
      Sha256 hash;
      for (std::size_t at = 0; at < length; at += piece)
        hash.update(bytes(message.substr(at, piece)));
      EXPECT_EQ(hash.finish(), sha256(bytes(message))) << length << " by " << piece;
    }
  }
}

TEST(Sha256, AcceleratedCompressionEqualsPortable) {
  std::string message;
  for (int i = 0; i < 64 * 37; ++i) message += static_cast<char>(i * 31 + i / 64);
  std::array<u32, 8> fast{1, 2, 3, 4, 5, 6, 7, 0xffffffffu}, plain = fast;
  sha256_compress(fast, bytes(message).data(), 37);
  sha256_compress_portable(plain, bytes(message).data(), 37);
  EXPECT_EQ(fast, plain);
}

}  // namespace
}  // namespace crenel
