#include "random/secret_key_id.h"

#include <gtest/gtest.h>

#include <set>

namespace crenel::random {
namespace {

TEST(DrawnSecretKeyId, NeverComesTwice) {
  std::set<SecretKeyId> seen;
  std::array<u8, 16> either{}, both{};
  both.fill(0xff);
  for (u32 i = 0; i < 1000; ++i) {
    const SecretKeyId id = draw_secret_key_id();
    EXPECT_FALSE(id.is_none());
    EXPECT_TRUE(seen.insert(id).second);
    for (u32 b = 0; b < 16; ++b) either[b] |= id.bytes()[b], both[b] &= id.bytes()[b];
  }
  for (u32 b = 0; b < 16; ++b) {  // every bit is drawn: 2^-999 against it
    EXPECT_EQ(either[b], 0xff) << b;
    EXPECT_EQ(both[b], 0) << b;
  }
}

TEST(DrawnSecretKeyId, PartsHaveNamesThatStay) {
  const SecretKeyId id = draw_secret_key_id(), other = draw_secret_key_id();
  EXPECT_EQ(secret_key_id_of_part(id, 0), id);
  std::set<SecretKeyId> seen;
  for (u32 part = 0; part < 300; ++part)
    for (const SecretKeyId& whole : {id, other}) {
      EXPECT_EQ(secret_key_id_of_part(whole, part), secret_key_id_of_part(whole, part));
      EXPECT_TRUE(seen.insert(secret_key_id_of_part(whole, part)).second) << part;
    }
}

}  // namespace
}  // namespace crenel::random
