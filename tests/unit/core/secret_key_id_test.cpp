#include "crenel/core/secret_key_id.h"

#include <gtest/gtest.h>

#include "crenel/core/error.h"

namespace crenel {
namespace {

constexpr SecretKeyId kFirst(SecretKeyId::Bytes{0x01, 0xff, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                                                15, 16});
constexpr SecretKeyId kLast(SecretKeyId::Bytes{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});

TEST(SecretKeyId, TextIsReadExactly) {
  EXPECT_EQ(kFirst.text(), "01ff030405060708090a0b0c0d0e0f10");
  for (const SecretKeyId& id : {kFirst, kLast, SecretKeyId()})
    EXPECT_EQ(SecretKeyId::from_text(id.text()), id);
  EXPECT_EQ(SecretKeyId().text(), "none");
  EXPECT_TRUE(SecretKeyId().is_none());
  EXPECT_FALSE(kLast.is_none());
}

TEST(SecretKeyId, OtherTextsAreNone) {
  const std::string text = kFirst.text();
  for (const std::string& bad :
       {std::string(), std::string("NONE"), std::string(32, '0'), text + "0", text.substr(1),
        "0" + text, " " + text.substr(1), "0x" + text.substr(2), "01FF" + text.substr(4),
        "g" + text.substr(1), std::string("none") + std::string(28, '0')})
    EXPECT_FALSE(SecretKeyId::from_text(bad)) << bad;
}

TEST(SecretKeyId, DifferentOnesAreRefusedByName) {
  EXPECT_NO_THROW(expect_same_secret_key(kFirst, kFirst, "a", "b"));
  EXPECT_NO_THROW(expect_same_secret_key(SecretKeyId(), kFirst, "a", "b"));
  EXPECT_NO_THROW(expect_same_secret_key(kFirst, SecretKeyId(), "a", "b"));
  EXPECT_EQ(either(kFirst, SecretKeyId()), kFirst);
  EXPECT_EQ(either(SecretKeyId(), kLast), kLast);
  try {
    expect_same_secret_key(kFirst, kLast, "ciphertext", "these keys");
    FAIL() << "no error";
  } catch (const StateError& e) {
    EXPECT_EQ(e.field("found"), kFirst.text());
    EXPECT_EQ(e.field("expected"), kLast.text());
    for (const std::string& part :
         {kFirst.text(), kLast.text(), std::string("ciphertext"), std::string("these keys")})
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace crenel
