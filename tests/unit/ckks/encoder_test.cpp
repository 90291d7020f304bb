// The canonical embedding: against its definition, sparse slots, and what encode refuses.
#include "ckks/encoder.h"

#include <limits>
#include <numbers>

#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using test::Complex;
using test::Values;

// m(zeta^(5^j)) by Horner, the definition.
Values evaluate_slowly(const std::vector<double>& coefficients, u64 slots) {
  const u64 n = coefficients.size();
  Values out;
  u64 exponent = 1;
  for (u64 j = 0; j < slots; ++j, exponent = exponent * 5 % (2 * n)) {
    const double angle = std::numbers::pi * static_cast<double>(exponent) / static_cast<double>(n);
    const Complex x{std::cos(angle), std::sin(angle)};
    Complex sum = 0.0;
    for (u64 k = n; k-- > 0;) sum = sum * x + coefficients[k];
    out.push_back(sum);
  }
  return out;
}

TEST(CkksEncoder, MatchesTheDefinition) {
  auto rng = test::test_rng();
  const u32 log_n = 8;
  const Encoder encoder(log_n);
  const std::vector<double> m = test::random_reals(rng, u64(1) << log_n);
  EXPECT_LT(test::max_error(encoder.to_slots(m, m.size() / 2), evaluate_slowly(m, m.size() / 2)),
            1e-11);
}

TEST(CkksEncoder, RoundTripsEverySlotCount) {
  auto rng = test::test_rng();
  for (u32 log_n : {10u, 14u})
    for (u64 slots = 1; slots <= u64(1) << (log_n - 1); slots *= 2) {
      const Encoder encoder(log_n);
      const Values v = test::random_values(rng, slots);
      EXPECT_LT(test::max_error(encoder.to_slots(encoder.to_coefficients(v), slots), v), 1e-12)
          << "N 2^" << log_n << " slots " << slots;
    }
}

TEST(CkksEncoder, SparseVectorsRepeatThroughTheFullOne) {
  auto rng = test::test_rng();
  const u32 log_n = 9;
  const Encoder encoder(log_n);
  const u64 full = u64(1) << (log_n - 1), slots = full / 8;
  const Values v = test::random_values(rng, slots);
  const auto all = encoder.to_slots(encoder.to_coefficients(v), full);
  for (u64 j = 0; j < full; ++j) EXPECT_LT(std::abs(all[j] - v[j % slots]), 1e-12);
}

TEST(CkksEncoder, ProductOfPolynomialsIsTheProductOfSlots) {
  auto rng = test::test_rng();
  const u32 log_n = 7;
  const u64 n = u64(1) << log_n;
  const Encoder encoder(log_n);
  const Values a = test::random_values(rng, n / 2), b = test::random_values(rng, n / 2);
  const auto pa = encoder.to_coefficients(a), pb = encoder.to_coefficients(b);
  std::vector<double> product(n, 0.0);
  for (u64 i = 0; i < n; ++i)
    for (u64 j = 0; j < n; ++j) product[(i + j) % n] += (i + j < n ? 1.0 : -1.0) * pa[i] * pb[j];
  const auto expected = test::zip_values(a, b, [](Complex x, Complex y) { return x * y; });
  EXPECT_LT(test::max_error(encoder.to_slots(product, n / 2), expected), 1e-11);
}

class CkksEncode : public test::SchemeTest {};

TEST_P(CkksEncode, RoundTripsComplexAndRealAtEveryLevel) {
  auto& w = world("toy-boot40");
  auto rng = test::test_rng();
  const Values v = test::random_values(rng, w.slots());
  const auto r = test::random_reals(rng, w.slots());
  for (u32 level = 0; level <= w.params().max_level(); ++level) {
    const auto complex = w.context.encode(v, level);
    EXPECT_EQ(complex.level(), level);
    EXPECT_EQ(complex.scale(), w.params().scale(level));
    EXPECT_EQ(complex.slots(), w.slots());
    EXPECT_FALSE(complex.metadata().real);
    EXPECT_LT(test::max_error(w.context.decode(complex), v), 0x1p-31) << level;
    const auto real = w.context.encode(r, level);
    EXPECT_TRUE(real.metadata().real);
    EXPECT_LT(test::max_error(w.context.decode(real), Values(r.begin(), r.end())), 0x1p-31);
  }
}

TEST_P(CkksEncode, AConstantIsTheVectorOfIt) {
  auto& w = world("toy-boot40");
  auto rng = test::test_rng();
  for (const Complex v : {Complex(0.0), Complex(1.0), Complex(-0.37), Complex(0.0, 1.0),
                          test::random_values(rng, 1)[0] * 100.0})
    for (const u32 level : {0u, 3u, w.params().max_level()})
      for (const u64 slots : {u64(1), w.slots()}) {
        const double scale = w.params().scale(level) * (slots == 1 ? 0.5 : 1.0);
        const auto constant = w.context.encode_constant(v, level, scale, slots);
        const auto vector = w.context.encode(Values(slots, v), level, scale, slots);
        EXPECT_EQ(test::words_of(constant.data().poly), test::words_of(vector.data().poly))
            << v << " at " << level;
        EXPECT_EQ(constant.slots(), slots);
        EXPECT_EQ(constant.scale(), scale);
        EXPECT_EQ(constant.metadata().real, v.imag() == 0.0);
        EXPECT_NEAR(constant.metadata().bound, vector.metadata().bound, 1e-12 * std::abs(v));
      }
  const auto defaults = w.context.encode_constant(1.0);
  EXPECT_EQ(defaults.level(), w.params().normal_top_level());
  EXPECT_EQ(defaults.slots(), w.slots());
  EXPECT_EQ(w.context.encode_constant(0.5, 1, 0.0, 0, 2.0).metadata().bound, 2.0);
}

TEST_P(CkksEncode, BadConstantsAreRefused) {
  auto& w = world("toy-boot40");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Complex v : {Complex(nan), Complex(0.0, nan), Complex(1.0 / 0.0), Complex(1e300)})
    EXPECT_THROW(w.context.encode_constant(v), ParameterError) << v;
  EXPECT_THROW(w.context.encode_constant(1.0, w.params().max_level() + 1), ParameterError);
  EXPECT_THROW(w.context.encode_constant(1.0, 1, 0.0, 3), ParameterError);
  EXPECT_THROW(w.context.encode_constant(1.0, 1, 0.0, 0, 0.5), ParameterError);
}

TEST_P(CkksEncode, DefaultsToTheTopNormalLevel) {
  auto& w = world("toy-boot40");
  const auto p = w.context.encode(Values{1.0});
  EXPECT_EQ(p.level(), w.params().normal_top_level());
  EXPECT_EQ(p.scale(), w.params().scale(p.level()));
  EXPECT_EQ(p.params_id(), w.params().id());
}

TEST_P(CkksEncode, PadsWithZerosAndTakesSparseSlots) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  for (u64 slots : {u64(1), u64(2), u64(64), w.slots()}) {
    const Values v = test::random_values(rng, (slots + 1) / 2);
    Values expected = v;
    expected.resize(slots, 0.0);
    const auto p = w.context.encode(v, {}, 0.0, slots);
    EXPECT_EQ(p.slots(), slots);
    EXPECT_LT(test::max_error(w.context.decode(p), expected), 0x1p-30) << slots;
  }
  EXPECT_LT(test::max_error(w.context.decode(w.context.encode(Values{})), Values(w.slots())),
            1e-12);
}

TEST_P(CkksEncode, BatchRowsAreIndependent) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  for (u64 slots : {u64(32), w.slots()}) {
    const Values v = test::random_values(rng, 3 * slots);
    const auto p = w.context.encode(v, 2, 0.0, slots, 3);
    EXPECT_LT(test::max_error(w.context.decode(p), v), 0x1p-30);
  }
  const Values rows = test::random_values(rng, 2 * 5);  // rows of 5 in 8 slots
  const auto found = w.context.decode(w.context.encode(rows, {}, 0.0, 8, 2));
  ASSERT_EQ(found.size(), 16u);
  for (u64 i = 0; i < 16; ++i)
    EXPECT_LT(std::abs(found[i] - (i % 8 < 5 ? rows[i / 8 * 5 + i % 8] : 0.0)), 0x1p-30);
}

TEST_P(CkksEncode, HoldsValuesUpToTheModulus) {
  auto& w = world("s40");
  const u32 level = 0;
  const double log_q = w.params().log_q(level);
  // A constant vector is one coefficient of scale * value.
  const double largest = std::exp2(log_q - 1.0) / w.params().scale(level);
  const Values fits(w.slots(), largest * 0.999), overflows(w.slots(), largest * 1.001);
  EXPECT_LT(test::max_error(w.context.decode(w.context.encode(fits, level)), fits),
            largest * 0x1p-30);
  const auto e = test::expect_error<ParameterError>([&] { w.context.encode(overflows, level); });
  EXPECT_NEAR(std::stod(e.field("log2_bound")), log_q - 1.0, 1e-6);
  EXPECT_EQ(e.field("log2_coefficient"), "");  // how large it is tells of the message
  // At high levels the integer type is the bound.
  const auto wide = test::expect_error<ParameterError>(
      [&] { w.context.encode(Values{Complex(0x1p40)}, {}, 0.0, 1); });
  EXPECT_EQ(wide.field("log2_bound"), "62");
}

TEST_P(CkksEncode, RefusesWhatIsNotFinite) {
  auto& w = world("s40");
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (Complex bad : {Complex(inf, 0), Complex(-inf, 0), Complex(0, inf), Complex(nan, 0),
                      Complex(0, nan), Complex(nan, inf)}) {
    Values v(6, 0.5);
    v[4] = bad;
    const auto e = test::expect_error<ParameterError>([&] { w.context.encode(v, {}, 0.0, 8, 2); });
    EXPECT_EQ(e.field("row"), "1");
    EXPECT_EQ(e.field("index"), "1");
  }
  const std::vector<double> reals{0.0, nan};
  EXPECT_THROW(w.context.encode(reals), ParameterError);
  // Finite values whose product with the scale is not.
  EXPECT_THROW(w.context.encode(Values(w.slots(), 1e305)), ParameterError);
}

TEST_P(CkksEncode, RefusesBadShapes) {
  auto& w = world("s40");
  auto e = test::expect_error<ParameterError>([&] { w.context.encode(Values(w.slots() + 1)); });
  EXPECT_EQ(e.field("values"), std::to_string(w.slots() + 1));
  EXPECT_EQ(e.field("slots"), std::to_string(w.slots()));
  e = test::expect_error<ParameterError>([&] { w.context.encode(Values(5), {}, 0.0, 4); });
  EXPECT_EQ(e.field("slots"), "4");
  e = test::expect_error<ParameterError>([&] { w.context.encode(Values(3), {}, 0.0, 12); });
  EXPECT_EQ(e.field("slots"), "12");
  e = test::expect_error<ParameterError>(
      [&] { w.context.encode(Values(3), {}, 0.0, 2 * w.slots()); });
  EXPECT_EQ(e.field("max_slots"), std::to_string(w.slots()));
  e = test::expect_error<ParameterError>([&] { w.context.encode(Values(3), {}, 0.0, 4, 2); });
  EXPECT_EQ(e.field("batch"), "2");
  EXPECT_THROW(w.context.encode(Values(3), {}, 0.0, 4, 0), ParameterError);
  e = test::expect_error<ParameterError>(
      [&] { w.context.encode(Values(3), w.params().max_level() + 1); });
  EXPECT_EQ(e.field("level"), std::to_string(w.params().max_level() + 1));
  EXPECT_EQ(e.field("max_level"), std::to_string(w.params().max_level()));
  for (double scale : {0.5, -1.0, std::numeric_limits<double>::infinity(),
                       std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(w.context.encode(Values(3), 1, scale), ParameterError) << scale;
}

TEST_P(CkksEncode, DecodeRefusesOtherParameters) {
  auto& w = world("s40");
  const auto foreign = world("toy-boot40").context.encode(Values{1.0});
  const auto e = test::expect_error<StateError>([&] { w.context.decode(foreign); });
  EXPECT_EQ(e.field("found"), foreign.params_id());
  EXPECT_EQ(e.field("expected"), w.params().id());
}

CRENEL_DEVICE_SUITE(CkksEncode);

}  // namespace
}  // namespace crenel::ckks
