// Errors: fields keep the type of what they were made from, and their text.
#include "crenel/core/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <variant>

namespace crenel {
namespace {

template <class T>
const T* as(const Error& error, const char* name) {
  const FieldValue* found = error.find_field(name);
  return found == nullptr ? nullptr : std::get_if<T>(&found->value());
}

TEST(ErrorFields, KeepTheirTypes) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(cat("seed ", seed));
  std::mt19937_64 random(seed);
  const auto level = static_cast<std::int64_t>(random());
  const std::uint64_t large = random() | std::uint64_t(1) << 63;
  const std::vector<int> steps{1, -2, int(random() % 1000)};
  const StateError error("message", {{"level", level},
                                     {"large", large},
                                     {"scale", 0x1p-30},
                                     {"real", true},
                                     {"rotations", steps},
                                     {"name", "a set"},
                                     {"small", std::uint8_t(65)}});
  ASSERT_NE(as<std::int64_t>(error, "level"), nullptr);
  EXPECT_EQ(*as<std::int64_t>(error, "level"), level);
  ASSERT_NE(as<std::uint64_t>(error, "large"), nullptr);
  EXPECT_EQ(*as<std::uint64_t>(error, "large"), large);
  ASSERT_NE(as<double>(error, "scale"), nullptr);
  EXPECT_EQ(*as<double>(error, "scale"), 0x1p-30);
  ASSERT_NE(as<bool>(error, "real"), nullptr);
  EXPECT_TRUE(*as<bool>(error, "real"));
  ASSERT_NE(as<FieldValue::List>(error, "rotations"), nullptr);
  EXPECT_EQ(*as<FieldValue::List>(error, "rotations"),
            FieldValue::List(steps.begin(), steps.end()));
  ASSERT_NE(as<std::string>(error, "name"), nullptr) << "text is no truth value";
  ASSERT_NE(as<std::int64_t>(error, "small"), nullptr) << "a byte is no letter";
  EXPECT_EQ(error.find_field("none"), nullptr);
}

TEST(ErrorFields, AsTextAreWhatMessagesSay) {
  const Error error("Error", "message",
                    {{"level", 3},
                     {"least", std::numeric_limits<std::int64_t>::min()},
                     {"large", std::numeric_limits<std::uint64_t>::max()},
                     {"scale", 0.1},
                     {"real", false},
                     {"rotations", std::vector<std::int64_t>{1, -2, 4}},
                     {"none", std::vector<std::int64_t>{}},
                     {"name", std::string_view("a set")}});
  EXPECT_EQ(error.field("level"), "3");
  EXPECT_EQ(error.field("least"), "-9223372036854775808");
  EXPECT_EQ(error.field("large"), "18446744073709551615");
  EXPECT_EQ(error.field("scale"), cat(0.1));
  EXPECT_EQ(error.field("real"), "false");
  EXPECT_EQ(error.field("rotations"), "1, -2, 4");
  EXPECT_EQ(error.field("none"), "");
  EXPECT_EQ(error.field("name"), "a set");
  EXPECT_EQ(error.field("absent"), "");
}

}  // namespace
}  // namespace crenel
