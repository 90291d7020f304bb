// Bounds of messages in files: a claim that is carried, and checked for being one.
#include "crenel/ckks/serialize.h"
#include "support/ckks_world.h"
#include "support/edited_files.h"

namespace crenel::ckks {
namespace {

using test::expect_error;
using test::Values;

constexpr const char* kSet = "s40";

class SerializeBounds : public test::SchemeTest {};

TEST_P(SerializeBounds, FilesCarryBoundsAndForgedOnesAreRefused) {
  auto& w = world(kSet);
  auto rng = test::test_rng();
  const double bound = std::uniform_real_distribution<>(1.0, 9.0)(rng);
  const Ciphertext x = w.client.encrypt(Values{0.5}, 1, 0.0, 0, 1, bound);
  const auto file = to_bytes(w.context, x);
  EXPECT_EQ(ciphertext_from_bytes(w.context, file).bound(), bound);
  EXPECT_EQ(to_bytes(w.context, ciphertext_from_bytes(w.context, file)), file);
  const auto plain = to_bytes(w.context, w.context.encode(Values{0.5}, 1, 0.0, 0, 1, bound));
  EXPECT_EQ(plaintext_from_bytes(w.context, plain).bound(), bound);
  EXPECT_EQ(w.client.encrypt(plaintext_from_bytes(w.context, plain)).bound(), bound);
  // Without one: unknown, and of a plaintext what it holds.
  const auto bare = to_bytes(w.context, w.client.encrypt(Values{0.5}, 1));
  EXPECT_EQ(test::file_header(bare).find("bound"), std::string::npos);
  EXPECT_EQ(ciphertext_from_bytes(w.context, bare).bound(), kUnknownBound);
  const auto measured = to_bytes(w.context, w.context.encode(Values{0.5, {0.0, -2.5}}, 1));
  EXPECT_EQ(test::file_header(measured).find("bound"), std::string::npos);
  EXPECT_NEAR(plaintext_from_bytes(w.context, measured).bound(), 2.5, 1e-6);
  EXPECT_EQ(w.client.encrypt(plaintext_from_bytes(w.context, measured)).bound(), kUnknownBound);
  // A bound of zero is one of next to nothing.
  const auto zero = to_bytes(w.context, w.ev.multiply_integer(x, 0));
  EXPECT_EQ(ciphertext_from_bytes(w.context, zero).bound(), std::numeric_limits<double>::min());
  const std::string header = test::file_header(file);
  const std::size_t at = header.find("\"bound\":\"") + 9, end = header.find('"', at);
  const std::string found = "\"bound\":\"" + header.substr(at, end - at) + "\"";
  for (const char* forged : {"nan", "NaN", "inf", "infinity", "-0x1p+0", "0x0p+0", "0", "1.0", "",
                             "0x1p+1024", "0x1p-1023", "-inf", "0x1p+0 "})
    EXPECT_NE(expect_error<SerializationError>([&] {
                ciphertext_from_bytes(
                    w.context, test::edited_file(file, found, cat("\"bound\":\"", forged, "\"")));
              })
                  .field("where")
                  .find("bound"),
              std::string::npos)
        << forged;
}

CRENEL_DEVICE_SUITE(SerializeBounds);

}  // namespace
}  // namespace crenel::ckks
