// Scales at the edges of their range and far beyond: refused, or good for finite numbers.
#include "ckks/scale.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>

#include "ckks/objects.h"
#include "crenel/ckks/serialize.h"
#include "support/ckks_world.h"
#include "support/edited_files.h"

namespace crenel::ckks {
namespace {

using test::Complex;
using test::Values;

/// Powers of two from the smallest double to the largest, the ends of the range, their neighbours,
/// and random numbers.
std::vector<double> extremes(const Params& params) {
  std::vector<double> scales{std::numeric_limits<double>::denorm_min(),
                             std::numeric_limits<double>::min(),
                             std::nextafter(1.0, 0.0),
                             1.0,
                             std::nextafter(1.0, 2.0),
                             std::numeric_limits<double>::max()};
  for (int e = -1074; e < 1024; e += 13) scales.push_back(std::ldexp(1.0, e));
  for (u32 level = 0; level <= params.max_level(); ++level)
    for (const double factor : {0.999, 1.001})
      scales.push_back(std::exp2(params.log_q(level)) * factor);
  auto rng = test::test_rng();
  std::uniform_real_distribution<double> exponent(-1022.0, 1023.9);
  for (int i = 0; i < 40; ++i) scales.push_back(std::exp2(exponent(rng)));
  return scales;
}

bool finite(const Values& v) {
  for (const Complex& x : v)
    if (!std::isfinite(x.real()) || !std::isfinite(x.imag())) return false;
  return true;
}

/// The metadata of this scale; %a is the format's own form.
std::string entry(double scale) {
  char text[64];
  std::snprintf(text, sizeof text, "\"scale\":\"%a\"", scale);
  return text;
}

class CkksScale : public test::SchemeTest {};

TEST_P(CkksScale, RangeIsThatOfTheLevel) {
  const Params& params = world("s40").params();
  for (u32 level = 0; level <= params.max_level(); ++level) {
    const double top = std::exp2(params.log_q(level));
    EXPECT_TRUE(scale_fits(params, level, 1.0));
    EXPECT_TRUE(scale_fits(params, level, params.scale(level)));
    EXPECT_FALSE(scale_fits(params, level, std::nextafter(1.0, 0.0)));
    EXPECT_FALSE(scale_fits(params, level, top * 1.001));
    EXPECT_TRUE(scale_fits(params, level, top * 0.999));
  }
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity(), 0x1p-1022})
    EXPECT_FALSE(scale_fits(params, 0, bad)) << bad;
}

TEST_P(CkksScale, EncodingTakesNoOther) {
  auto& w = world("s40");
  for (const double scale : extremes(w.params()))
    for (const Values& v : {Values{Complex(0.5, -0.25)}, Values{Complex(0.0)}}) {
      std::optional<Ciphertext> c;
      try {
        c = w.client.encrypt(v, 1u, scale);
      } catch (const ParameterError&) {
        continue;
      }
      EXPECT_TRUE(scale_fits(w.params(), 1, scale)) << scale;
      EXPECT_TRUE(finite(w.client.decrypt(*c))) << scale;
    }
}

TEST_P(CkksScale, FilesWithAnyScaleAreRefusedOrDecryptToFiniteNumbers) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  u32 loaded = 0, refused = 0;
  for (const u32 level : {0u, 4u}) {
    const Ciphertext fresh = w.client.encrypt(test::random_values(rng, 8), level);
    const auto bytes = to_bytes(w.context, fresh),
               plain = to_bytes(w.context, w.client.decrypt_to_plaintext(fresh), true);
    const std::string own = entry(fresh.scale());
    for (const double scale : extremes(w.params())) {
      if (!std::isnormal(scale)) continue;
      const std::string other = entry(scale);
      try {
        const auto c = ciphertext_from_bytes(w.context, test::edited_file(bytes, own, other));
        ++loaded;
        EXPECT_TRUE(finite(w.client.decrypt(c))) << scale;
        const auto p = plaintext_from_bytes(w.context, test::edited_file(plain, own, other));
        EXPECT_TRUE(finite(w.context.decode(p))) << scale;
      } catch (const SerializationError& e) {
        ++refused;
        EXPECT_NE(e.field("where").find("scale"), std::string::npos) << e.what();
        EXPECT_FALSE(scale_fits(w.params(), level, scale)) << scale;
        EXPECT_THROW(plaintext_from_bytes(w.context, test::edited_file(plain, own, other)),
                     SerializationError);
      }
    }
  }
  EXPECT_GT(loaded, 10u);
  EXPECT_GT(refused, 10u);
}

TEST_P(CkksScale, RescalingStopsBeforeTheEndOfDoubles) {
  auto& w = world("s40");
  Ciphertext c = w.client.encrypt(Values{0.5});
  const double before = c.scale();
  const auto e = test::expect_error<StateError>([&] {
    for (u32 i = 0; i <= w.params().max_level(); ++i) c = w.ev.rescale(c);
  });
  EXPECT_LT(std::stod(e.field("scale")), std::stod(e.field("expected").substr(3))) << e.what();
  EXPECT_LE(c.scale(), before);
  EXPECT_GE(c.scale(), kMinRescaled);
  EXPECT_TRUE(finite(w.client.decrypt(c)));
  const Ciphertext three = w.ev.square_lazy(w.client.encrypt(Values{0.5}, 3u, 2.0));
  EXPECT_THROW(w.ev.relinearise_rescale(three), StateError);
}

TEST_P(CkksScale, LevelsAreAdjustedToNoOther) {
  auto& w = world("s40");
  const Ciphertext c = w.client.encrypt(Values{0.5});
  for (const double scale : extremes(w.params())) {
    try {
      const Ciphertext low = w.ev.adjust_level(c, 1, scale);
      EXPECT_TRUE(scale_fits(w.params(), 1, scale)) << scale;
      EXPECT_TRUE(finite(w.client.decrypt(low))) << scale;
    } catch (const Error&) {  // out of range, or out of reach
    }
  }
  EXPECT_THROW(w.ev.adjust_level(c, 1, 0.5), ParameterError);
  EXPECT_THROW(w.ev.multiply(c, Complex(0.0), 0x1p1023), ParameterError);
}

// Of a modulus beyond 2^1024, anything may come out of a file.
TEST(CkksScaleOfNoMessage, DecryptsToAnErrorAndNotToNan) {
  const Context context(Params::generate(12, 40, 26, true), "cpu");
  ASSERT_GT(context.params().log_q(context.params().max_level()), 1030.0);
  Client client = context.keygen();
  Ciphertext c = client.encrypt(Values{0.5}, context.params().max_level());
  EXPECT_TRUE(finite(client.decrypt(c)));
  Ciphertext other = context.keygen().encrypt(Values{0.5}, context.params().max_level());
  other.data().meta.secret_key = client.secret_key_id();  // a forged file
  EXPECT_THROW(client.decrypt(other), StateError);
}

CRENEL_DEVICE_SUITE(CkksScale);

}  // namespace
}  // namespace crenel::ckks
