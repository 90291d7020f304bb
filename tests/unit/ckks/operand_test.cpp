// The convenient form against the clear computation, and against the explicit operations bit by
// bit.
#include "crenel/ckks/operand.h"

#include "crenel/core/error.h"
#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using test::Complex;
using test::Values;

class CkksOperand : public test::SchemeTest {
 protected:
  void SetUp() override {
    test::SchemeTest::SetUp();
    if (IsSkipped() || HasFailure()) return;
    world_ = &world("s40");
    auto rng = test::test_rng();
    x = test::random_reals(rng, slots());
    y = test::random_reals(rng, slots());
  }
  test::World& w() const { return *world_; }
  u64 slots() const { return w().slots(); }
  Operand encrypted(const std::vector<double>& v, std::optional<u32> level = {},
                    double scale = 0.0) {
    return {w().ev, w().client.encrypt(std::span<const double>(v), level, scale)};
  }
  template <class F>
  void expect(const Operand& found, u32 level, F f, double operations = 8.0) {
    Values expected(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) expected[i] = f(x[i], y[i]);
    EXPECT_EQ(found.level(), level);
    EXPECT_LT(test::max_error(w().client.decrypt(found.ciphertext()), expected),
              test::tolerance(w().params(), operations));
  }
  /// To the last bit: no two ciphertexts with different errors decrypt to the same numbers.
  Values slots_of(const Ciphertext& c) { return w().client.decrypt(c); }
  u32 top() const { return w().params().normal_top_level(); }

  test::World* world_ = nullptr;
  std::vector<double> x, y;
};

TEST_P(CkksOperand, SumsKeepTheLevel) {
  const Operand a = encrypted(x), b = encrypted(y);
  const Plaintext p = w().context.encode(std::span<const double>(y));
  expect(a + b, top(), [](double s, double t) { return s + t; });
  expect(a - b.ciphertext(), top(), [](double s, double t) { return s - t; });
  expect(p + a, top(), [](double s, double t) { return s + t; });
  expect(y - a, top(), [](double s, double t) { return t - s; });
  expect(a - p, top(), [](double s, double t) { return s - t; });
  expect(-a, top(), [](double s, double) { return -s; });
  expect(1 - a, top(), [](double s, double) { return 1 - s; });
  expect(a + Complex(0.5, -2.0), top(), [](double s, double) { return Complex(s + 0.5, -2.0); });
}

TEST_P(CkksOperand, ProductsConsumeOneLevelAndStayCanonical) {
  const Operand a = encrypted(x), b = encrypted(y);
  const Plaintext p = w().context.encode(std::span<const double>(y));
  const auto product = [](double s, double t) { return s * t; };
  for (const Operand& c : {a * b, b.ciphertext() * a, a * p, y * a}) {
    expect(c, top() - 1, product);
    EXPECT_EQ(c.scale(), w().params().scale(top() - 1));
  }
  expect(a * 0.3, top() - 1, [](double s, double) { return 0.3 * s; });
  expect(a * 2.0, top() - 1, [](double s, double) { return 2.0 * s; });
  expect(a / 4, top() - 1, [](double s, double) { return s / 4; });
  std::vector<double> large(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) large[i] = y[i] + 2.0;
  expect(a / large, top() - 1, [](double s, double t) { return s / (t + 2.0); });
  // The same bits as by hand.
  EXPECT_EQ(slots_of((a * b).ciphertext()),
            slots_of(w().ev.multiply_rescale(a.ciphertext(), b.ciphertext())));
  EXPECT_EQ(slots_of(a.square().ciphertext()), slots_of((a * a).ciphertext()));
}

TEST_P(CkksOperand, IntegersConsumeNoLevel) {
  const Operand a = encrypted(x);
  expect(a * 2, top(), [](double s, double) { return 2 * s; });
  expect(-3 * a, top(), [](double s, double) { return -3 * s; });
  expect(a * true, top(), [](double s, double) { return s; });
  expect(a * Complex(2.0, -1.0), top(), [](double s, double) { return Complex(2 * s, -s); });
  expect(a / Complex(0.0, 1.0), top(), [](double s, double) { return Complex(0, -s); });
  EXPECT_EQ((a * 0x7fffffffll).level(), top());
  EXPECT_EQ((a * 0x80000000ll).level(), top() - 1);  // one more and it is encoded
  EXPECT_EQ((a * Complex(0.5, 1.0)).level(), top() - 1);
}

TEST_P(CkksOperand, LevelsAndScalesMeet) {
  const Operand a = encrypted(x), b = encrypted(y), low = a * a * b;
  expect(low + b, top() - 2, [](double s, double t) { return s * s * t + t; });
  expect(b - low, top() - 2, [](double s, double t) { return t - s * s * t; });
  expect(b * low, top() - 3, [](double s, double t) { return s * s * t * t; });
  const Operand odd = encrypted(y, top(), 1.5 * a.scale());
  expect(a + odd, top() - 1, [](double s, double t) { return s + t; });
  for (const Operand& product :
       {Operand(w().ev, w().ev.multiply(a.ciphertext(), b.ciphertext())),
        Operand(w().ev, w().ev.multiply_lazy(a.ciphertext(), b.ciphertext()))}) {
    EXPECT_EQ(product.reduced().level(), top() - 1);
    EXPECT_EQ(product.reduced().ciphertext().components(), 2u);
    expect(product + a, top() - 1, [](double s, double t) { return s * t + s; });
    expect(product * 3, top() - 1, [](double s, double t) { return 3 * s * t; });
    expect(product * y, top() - 2, [](double s, double t) { return s * t * t; });
  }
  EXPECT_EQ(a.reduced().shared_ciphertext(), a.shared_ciphertext());  // nothing to do: no copy
  const Operand bottom = encrypted(x, 0u), other = encrypted(y, 0u, 1.5 * a.scale());
  const auto e = test::expect_error<StateError>([&] { bottom + other; });
  EXPECT_EQ(e.field("level"), "0");
}

TEST_P(CkksOperand, PowersTakeTheLeastDepth) {
  const Operand a = encrypted(x);
  for (const auto& [exponent, depth] :
       {std::pair<u64, u32>{1, 0}, {2, 1}, {3, 2}, {4, 2}, {7, 3}, {8, 3}})
    expect(a.power(exponent), top() - depth, [exponent = exponent](double s, double) {
      return std::pow(s, static_cast<double>(exponent));
    });
  test::expect_error<ParameterError>([&] { a.power(0); });
}

TEST_P(CkksOperand, SlotsAndPolynomials) {
  const Operand a = encrypted(x);
  const i64 steps[] = {0, 1};
  EXPECT_EQ(slots_of(a.rotate(-3).ciphertext()), slots_of(w().ev.rotate(a.ciphertext(), -3)));
  EXPECT_EQ(slots_of(a.rotate_sum(steps).ciphertext()),
            slots_of(w().ev.rotate_sum(a.ciphertext(), steps)));
  EXPECT_EQ(slots_of(a.rotate_many(steps)[1].ciphertext()),
            slots_of(w().ev.rotate(a.ciphertext(), 1)));
  double total = 0.0;
  for (double v : x) total += v;
  expect(a.sum(), top(), [&](double, double) { return total; }, 2.0 * static_cast<double>(slots()));
  EXPECT_EQ(slots_of(a.sum({}, 256).ciphertext()),
            slots_of(w().ev.sum_slots(a.ciphertext(), slots() / 256, 256)));
  test::expect_error<ParameterError>([&] { a.sum(0); });
  const double c[] = {0.5, 0.2, 0.0, -0.1};
  expect(a.polynomial(c), top() - 2,
         [](double s, double) { return 0.5 + 0.2 * s - 0.1 * s * s * s; });
  expect(a.at_level(1), 1, [](double s, double) { return s; });
  expect((a * Complex(0.0, 1.0)).conjugate(), top(),
         [](double s, double) { return Complex(0, -s); });
}

TEST_P(CkksOperand, WhatCannotBeIsRefused) {
  const Operand bottom = encrypted(x, 0u);
  // Each says what it is, which level it has and needs, and what to do.
  const auto refused = [](const char* operation, u32 level, u32 needed, auto call) {
    const auto e = test::expect_error<StateError>(call);
    EXPECT_EQ(e.field("operation"), operation) << e.what();
    EXPECT_EQ(e.field("level"), cat(level)) << e.what();
    EXPECT_EQ(e.field("needed"), cat(needed)) << e.what();
    for (const char* advice : {"bootstrap it", "Params(..., depth="})
      EXPECT_NE(std::string(e.what()).find(advice), std::string::npos) << e.what();
  };
  refused("multiply", 0, 1, [&] { bottom* bottom; });
  refused("multiply", 0, 1, [&] { bottom * 0.5; });
  refused("multiply", 0, 1, [&] { bottom* x; });
  refused("divide", 0, 1, [&] { bottom / 3.0; });
  refused("divide", 0, 1, [&] { bottom / y; });
  refused("power", 0, 2, [&] { bottom.power(3); });
  refused("power", 1, 3, [&] { encrypted(x, 1u).power(5); });
  refused("polynomial", 1, 2,
          [&] { encrypted(x, 1u).polynomial(y.size() > 3 ? std::vector{0.0, 0.0, 1.0, 1.0} : y); });
  refused("adjust_level to level 2", 0, 2, [&] { bottom.at_level(2); });
  test::expect_error<ParameterError>([&] { bottom / 0.0; });
  std::vector<double> zero = y;
  zero[3] = 0.0;
  test::expect_error<ParameterError>([&] { bottom / zero; });
  EXPECT_EQ((bottom * 3).level(), 0u);
}

CRENEL_DEVICE_SUITE(CkksOperand);

TEST(CkksRotations, OfASumOverSlots) {
  EXPECT_EQ(sum_slots_rotations(8, 3), (std::vector<i64>{3, 6, 12}));
  EXPECT_EQ(sum_slots_rotations(1), std::vector<i64>{});
  EXPECT_EQ(sum_slots_rotations(2, std::numeric_limits<i64>::max()).size(), 1u);
  test::expect_error<ParameterError>([] { sum_slots_rotations(6); });
  test::expect_error<ParameterError>([] { sum_slots_rotations(0); });
  test::expect_error<ParameterError>([] { sum_slots_rotations(8, i64(1) << 61); });
}

}  // namespace
}  // namespace crenel::ckks
