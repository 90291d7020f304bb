#include "serialize/json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "crenel/core/error.h"
#include "serialize/scalars.h"

namespace crenel::serialize {
namespace {

std::span<const u8> bytes_of(std::string_view text) {
  return {reinterpret_cast<const u8*>(text.data()), text.size()};
}

std::string parse_string(std::string_view text) {
  JsonReader json(bytes_of(text), 0);
  const std::string value = json.string().value;
  json.finish();
  return value;
}

u64 parse_number(std::string_view text) {
  JsonReader json(bytes_of(text), 0);
  const u64 value = json.integer();
  json.finish();
  return value;
}

/// The byte that a refusal names, or "loaded".
template <class F>
std::string refused_at(const F& parse) {
  try {
    parse();
  } catch (const SerializationError& error) {
    return error.field("offset");
  }
  return "loaded";
}

TEST(SerializeJson, Strings) {
  EXPECT_EQ(parse_string(R"("")"), "");
  EXPECT_EQ(parse_string(R"(  "a b" )"), "a b");
  EXPECT_EQ(parse_string(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(parse_string(R"("\u0041\u00e9\u20ac\ud83d\ude00")"), "A\u00e9\u20ac\U0001F600");
  EXPECT_EQ(parse_string("\"\u00e9\u20ac\U0001F600\""), "\u00e9\u20ac\U0001F600");
  EXPECT_EQ(parse_string(R"("\u0000")"), std::string(1, '\0'));
}

TEST(SerializeJson, StringsAreRefusedWhereTheyGoWrong) {
  const auto at = [](std::string_view text) { return refused_at([&] { parse_string(text); }); };
  EXPECT_EQ(at(""), "0");
  EXPECT_EQ(at("abc"), "0");
  EXPECT_EQ(at("\"abc"), "4");
  EXPECT_EQ(at("\"a\nb\""), "2");
  EXPECT_EQ(at(R"("\x")"), "2");
  EXPECT_EQ(at(R"("\)"), "2");
  EXPECT_EQ(at(R"("\u12g4")"), "5");
  EXPECT_EQ(at(R"("\u12)"), "5");
  EXPECT_EQ(at(R"("\ud800")"), "7");
  EXPECT_EQ(at(R"("\ude00")"), "7");
  EXPECT_EQ(at(R"("\ud800\u0041")"), "13");
  EXPECT_EQ(at("\"a\"b"), "3");
}

TEST(SerializeJson, Utf8) {
  const auto bad = [](std::string_view text) { return find_invalid_utf8(text); };
  const auto none = std::string_view::npos;
  EXPECT_EQ(bad("plain \u00e9\u07ff\u0800\uffff\U00010000\U0010ffff"), none);
  EXPECT_EQ(bad("ab\x80"), 2u);
  EXPECT_EQ(bad("\xc0\x80"), 0u);  // over-long NUL
  EXPECT_EQ(bad("\xc1\xbf"), 0u);
  EXPECT_EQ(bad("\xe0\x9f\xbf"), 0u);      // over-long
  EXPECT_EQ(bad("\xed\xa0\x80"), 0u);      // surrogate
  EXPECT_EQ(bad("\xf0\x8f\xbf\xbf"), 0u);  // over-long
  EXPECT_EQ(bad("\xf4\x90\x80\x80"), 0u);  // above U+10FFFF
  EXPECT_EQ(bad("\xf5\x80\x80\x80"), 0u);
  EXPECT_EQ(bad("x\xe2\x82"), 1u);  // cut
  EXPECT_EQ(bad("x\xe2\x28\xa1"), 1u);
  EXPECT_EQ(bad("\xf0\x90\x28\xbc"), 0u);
  EXPECT_EQ(refused_at([] { parse_string("\"a\xff\""); }), "2");
}

TEST(SerializeJson, Integers) {
  EXPECT_EQ(parse_number("0"), 0u);
  EXPECT_EQ(parse_number(" 907 "), 907u);
  EXPECT_EQ(parse_number("18446744073709551615"), ~u64{0});
  for (const char* text : {"18446744073709551616", "99999999999999999999999", "-1", "+1", "01",
                           "00", "1.0", "1e3", "1E3", "", "a", "0x10", "null", "\"1\"", ".5"})
    EXPECT_NE(refused_at([&] { parse_number(text); }), "loaded") << text;
}

/// Reads {"k": [numbers]...} and counts the numbers.
std::size_t count(std::string_view text) {
  JsonReader json(bytes_of(text), 0);
  std::size_t n = 0;
  json.open_object();
  for (JsonString key; json.next_member(key);) {
    json.open_array();
    for (; json.next_element(); ++n) json.integer();
  }
  json.finish();
  return n;
}

TEST(SerializeJson, Structure) {
  EXPECT_EQ(count("{}"), 0u);
  EXPECT_EQ(count("{\"a\":[]}   "), 0u);
  EXPECT_EQ(count(" {\t\"a\" :\n[ 1 , 2 ] , \"b\":[3]\r}"), 3u);
  const auto at = [](std::string_view text) { return refused_at([&] { count(text); }); };
  EXPECT_EQ(at(""), "0");
  EXPECT_EQ(at("["), "0");
  EXPECT_EQ(at("{"), "1");
  EXPECT_EQ(at("{,}"), "1");
  EXPECT_EQ(at("{\"a\"}"), "4");
  EXPECT_EQ(at("{\"a\":}"), "5");
  EXPECT_EQ(at("{\"a\":[1,]}"), "8");
  EXPECT_EQ(at("{\"a\":[,1]}"), "6");
  EXPECT_EQ(at("{\"a\":[1 2]}"), "8");
  EXPECT_EQ(at("{\"a\":[1],}"), "9");
  EXPECT_EQ(at("{\"a\":[1]]"), "8");
  EXPECT_EQ(at("{\"a\":[1}"), "7");
  EXPECT_EQ(at("{\"a\":[[1]]}"), "6");
  EXPECT_EQ(at("{} x"), "3");
  EXPECT_EQ(at("{}\n"), "2");  // padding is spaces only
}

TEST(SerializeJson, DepthIsLimited) {
  const std::string deep(100000, '[');
  JsonReader json(bytes_of(deep), 0);
  for (u32 i = 0; i < JsonReader::kMaxDepth; ++i) {
    json.open_array();
    ASSERT_TRUE(json.next_element());
  }
  EXPECT_EQ(refused_at([&] { json.open_array(); }), "4");
}

TEST(SerializeJson, QuoteIsReadBack) {
  const std::string text("a\"b\\c\n\x01\x1f\u00e9\0d", 11);
  EXPECT_EQ(parse_string(json_quote(text)), text);
  EXPECT_EQ(json_quote("x\ty"), "\"x\\u0009y\"");
}

TEST(SerializeScalars, RealsAreExactAndCanonical) {
  for (const double x : {1.0, 1.5, 0.1, 1.1 * 0x1p40, 0x1.fffffffffffffp+1023, 0x1p-1022, 3.0e17})
    EXPECT_EQ(parse_real(format_real(x)).value(), x) << x;
  EXPECT_EQ(format_real(1.0), "0x1p+0");
  EXPECT_EQ(format_real(0x1.8p40), "0x1.8p+40");
  EXPECT_EQ(format_real(0x1.0000000000001p-7), "0x1.0000000000001p-7");
  for (const char* text : {"",
                           "1",
                           "0x1",
                           "0x1p",
                           "0x1p+",
                           "0x1.p+4",
                           "0x1.80p+4",
                           "0x1.8p4",
                           "0x1.8P+4",
                           "0x1.8p+04",
                           "0x2p+4",
                           "0x0p+0",
                           "-0x1p+4",
                           " 0x1p+4",
                           "0x1p+4 ",
                           "0x1p+1024",
                           "0x1p-1023",
                           "0x1p-0",
                           "0x1.00000000000001p+0",
                           "0x1.Ap+0",
                           "nan",
                           "inf",
                           "0x1.gp+0",
                           "0x1p+99999999999999999999",
                           "0x1x8p+40",
                           "0x12p+40"})
    EXPECT_FALSE(parse_real(text).has_value()) << text;
}

TEST(SerializeScalars, Integers) {
  EXPECT_EQ(parse_integer("0"), 0u);
  EXPECT_EQ(parse_integer("18446744073709551615"), ~u64{0});
  for (const char* text : {"", "00", "01", "-1", "+1", "1 ", "18446744073709551616", "1.0", "0x1"})
    EXPECT_FALSE(parse_integer(text).has_value()) << text;
}

}  // namespace
}  // namespace crenel::serialize
