// Polynomial evaluation against the clear computation: every small degree, sparse coefficient
// patterns, exact depth, both bases.
#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using test::Complex;
using test::Values;

Complex power_sum(std::span<const double> c, Complex x) {
  Complex sum = 0.0;
  for (u64 k = c.size(); k-- > 0;) sum = sum * x + c[k];
  return sum;
}

// Clenshaw on [a, b].
Complex chebyshev_sum(std::span<const double> c, Complex x, double a = -1.0, double b = 1.0) {
  const Complex y = (2.0 * x - a - b) / (b - a);
  Complex p = 0.0, q = 0.0;
  for (u64 k = c.size(); k-- > 1;) {
    const Complex next = c[k] + 2.0 * y * p - q;
    q = p;
    p = next;
  }
  return c[0] + y * p - q;
}

class CkksPolynomial : public test::SchemeTest {
 protected:
  void expect_power(test::World& w, const Values& x, const Ciphertext& a,
                    const std::vector<double>& c, double operations = 32.0) {
    const Ciphertext r = w.ev.polynomial(a, c);
    u64 degree = c.size() - 1;
    while (degree > 0 && c[degree] == 0.0) --degree;
    EXPECT_EQ(r.level(), a.level() - polynomial_depth(static_cast<u32>(degree)));
    EXPECT_EQ(r.scale(), w.params().scale(r.level()));
    EXPECT_EQ(r.components(), 2u);
    const auto expected = test::map_values(x, [&](Complex v) { return power_sum(c, v); });
    EXPECT_LT(test::max_error(w.client.decrypt(r), expected),
              test::tolerance(w.params(), operations));
  }
};

TEST(CkksPolynomialDepth, IsTheBitLengthOfTheDegree) {
  EXPECT_EQ(polynomial_depth(0), 0u);
  EXPECT_EQ(polynomial_depth(1), 1u);
  for (u32 degree = 1; degree < 300; ++degree)
    EXPECT_EQ(polynomial_depth(degree),
              static_cast<u32>(std::ceil(std::log2(static_cast<double>(degree) + 1.0))));
}

TEST(CkksChebyshev, InterpolatesExactlyAndConverges) {
  const auto line = chebyshev_coefficients([](double x) { return 3.0 * x - 1.0; }, 2.0, 6.0, 3);
  ASSERT_EQ(line.size(), 4u);
  EXPECT_NEAR(line[0], 11.0, 1e-13);
  EXPECT_NEAR(line[1], 6.0, 1e-13);
  EXPECT_NEAR(line[2], 0.0, 1e-13);
  EXPECT_NEAR(line[3], 0.0, 1e-13);
  const auto f = [](double x) { return std::exp(x); };
  const auto c = chebyshev_coefficients(f, -3.0, 1.0, 20);
  for (double x = -3.0; x <= 1.0; x += 0.01)
    EXPECT_NEAR(chebyshev_sum(c, x, -3.0, 1.0).real(), f(x), 1e-13);
}

TEST_P(CkksPolynomial, PowerBasisEveryDegree) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots(), 0.7);  // |x| < 1
  const Ciphertext a = w.client.encrypt(x, 6u);
  for (u32 degree = 0; degree <= 31; degree += exhaustive() || degree < 3 ? 1 : 4) {
    SCOPED_TRACE(degree);
    auto c = test::random_reals(rng, degree + 1);
    c[degree] = degree % 2 ? 0.75 : -0.5;
    if (degree == 0) {
      const Ciphertext r = w.ev.polynomial(a, c);
      EXPECT_EQ(r.level(), a.level());
      EXPECT_LT(test::max_error(w.client.decrypt(r), Values(x.size(), c[0])), 1e-10);
      continue;
    }
    expect_power(w, x, a, c);
  }
}

TEST_P(CkksPolynomial, ChebyshevBasisEveryDegree) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const auto reals = test::random_reals(rng, w.slots());
  const Values x(reals.begin(), reals.end());
  const Ciphertext a = w.client.encrypt(reals, 6u);
  for (u32 degree = 1; degree <= 31; degree += exhaustive() || degree < 3 ? 1 : 4) {
    SCOPED_TRACE(degree);
    auto c = test::random_reals(rng, degree + 1);
    c[degree] = degree % 2 ? 0.75 : -0.5;
    const Ciphertext r = w.ev.polynomial(a, c, PolynomialBasis::chebyshev);
    EXPECT_EQ(r.level(), a.level() - polynomial_depth(degree));
    EXPECT_EQ(r.scale(), w.params().scale(r.level()));
    const auto expected = test::map_values(x, [&](Complex v) { return chebyshev_sum(c, v); });
    EXPECT_LT(test::max_error(w.client.decrypt(r), expected), test::tolerance(w.params(), 256.0));
  }
}

TEST_P(CkksPolynomial, SparseCoefficientPatterns) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots(), 0.7);
  const Ciphertext a = w.client.encrypt(x, 5u);
  std::vector<std::vector<double>> patterns{{0, 0, 1},
                                            {0, 0, 0, 1},
                                            {1, 0, 0, 0, 1},
                                            {0, 1, 0, 1},
                                            {0.5, 0.197, 0, -0.004},
                                            {0, 0, 0, 0, 0, 1},
                                            {2, 0, 0, 0},
                                            {0, 0, 0, 0, 0, 0, 0, 0, 1}};
  patterns.push_back(std::vector<double>(32));
  patterns.back()[31] = -1.0;
  patterns.push_back(std::vector<double>(17));
  patterns.back()[16] = 0.5;
  patterns.back()[1] = 1.0;
  for (int k = 0; k < (exhaustive() ? 24 : 4); ++k) {
    std::vector<double> c(2 + rng() % 30);
    for (auto& v : c) v = rng() % 3 ? 0.0 : std::uniform_real_distribution<double>(-1, 1)(rng);
    c.back() = 1.0;
    patterns.push_back(c);
  }
  for (const auto& c : patterns) {
    std::string trace;
    for (double v : c) trace += std::to_string(v) + " ";
    SCOPED_TRACE(trace);
    if (std::all_of(c.begin() + 1, c.end(), [](double v) { return v == 0.0; })) {
      EXPECT_LT(test::max_error(w.client.decrypt(w.ev.polynomial(a, c)), Values(x.size(), c[0])),
                1e-9);
      continue;
    }
    expect_power(w, x, a, c);
  }
}

TEST_P(CkksPolynomial, EveryScaleAndTheLastLevel) {
  for (const char* name : every_scale()) {
    auto& w = world(name);
    auto rng = test::test_rng();
    const Values x = test::random_values(rng, w.slots(), 0.7);
    for (u32 degree : {1u, 2u, 3u, 7u, 12u}) {
      SCOPED_TRACE(std::string(name) + " degree " + std::to_string(degree));
      auto c = test::random_reals(rng, degree + 1);
      c[degree] = 0.5;
      expect_power(w, x, w.client.encrypt(x, polynomial_depth(degree)), c);  // ends at level 0
      expect_power(w, x, w.client.encrypt(x), c);
    }
  }
}

TEST_P(CkksPolynomial, ChebyshevOnAnInterval) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const double a = -8.0, b = 8.0;
  const auto reals = test::random_reals(rng, w.slots(), a, b);
  const auto sigmoid = [](double x) { return 1.0 / (1.0 + std::exp(-x)); };
  const auto c = chebyshev_coefficients(sigmoid, a, b, 23);
  const Ciphertext x = w.client.encrypt(reals);
  const Ciphertext r = w.ev.polynomial(x, c, PolynomialBasis::chebyshev, a, b);
  EXPECT_EQ(r.level(), x.level() - 1 - polynomial_depth(23));
  const auto expected = test::map_values(Values(reals.begin(), reals.end()),
                                         [&](Complex v) { return chebyshev_sum(c, v, a, b); });
  EXPECT_LT(test::max_error(w.client.decrypt(r), expected), test::tolerance(w.params(), 64.0));
  for (u64 i = 0; i < reals.size(); ++i) ASSERT_NEAR(expected[i].real(), sigmoid(reals[i]), 2e-3);
}

TEST_P(CkksPolynomial, FromScalesThatAreNotCanonical) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots(), 0.7);
  const Ciphertext a = w.client.encrypt(x, 6u, 0x1p41 + 54321.0);
  for (u32 degree : {2u, 5u, 9u}) {
    SCOPED_TRACE(degree);
    auto c = test::random_reals(rng, degree + 1);
    c[degree] = 0.5;
    // X^8 has the scale 2^48, its factor 2^32: the largest error is some 10 operations, and 32 in
    // one run of several thousand (roundings times slots of the secret: no Gaussian tail).
    expect_power(w, x, a, c, 128.0);
  }
}

TEST_P(CkksPolynomial, BatchedInput) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, 2 * w.slots(), 0.7);
  expect_power(w, x, w.client.encrypt(x, {}, 0.0, 0, 2), {0.1, -0.3, 0.0, 0.25, 1.0, 0.5});
}

TEST_P(CkksPolynomial, RefusesTooFewLevels) {
  auto& w = world("s40");
  for (u32 level : {0u, 1u, 2u}) {
    const Ciphertext a = w.client.encrypt(Values{0.5}, level);
    const auto before = w.client.decrypt(a);
    const u32 depth = level + 1;
    std::vector<double> c(u64(1) << level);
    c.push_back(1.0);  // degree 2^level has depth level + 1
    const auto e = test::expect_error<StateError>([&] { w.ev.polynomial(a, c); });
    EXPECT_EQ(e.field("level"), std::to_string(level));
    EXPECT_EQ(e.field("needed"), std::to_string(depth));
    EXPECT_EQ(w.client.decrypt(a), before);
  }
  const Ciphertext a = w.client.encrypt(Values{0.5}, 2u);  // the map of the interval costs one
  const auto e = test::expect_error<StateError>([&] {
    w.ev.polynomial(a, std::vector<double>{0, 0, 1}, PolynomialBasis::chebyshev, 0.0, 1.0);
  });
  EXPECT_EQ(e.field("needed"), "3");
}

TEST_P(CkksPolynomial, RefusesBadArguments) {
  auto& w = world("s40");
  const Ciphertext a = w.client.encrypt(Values{0.5}, 3u);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  auto e = test::expect_error<ParameterError>([&] { w.ev.polynomial(a, {}); });
  EXPECT_EQ(e.field("count"), "0");
  e = test::expect_error<ParameterError>(
      [&] { w.ev.polynomial(a, std::vector<double>{1.0, nan}); });
  EXPECT_EQ(e.field("index"), "1");
  const std::vector<double> c{0.0, 1.0};
  for (auto [lo, hi] : {std::pair{1.0, 1.0}, {2.0, 1.0}, {nan, 1.0}, {0.0, 1.0 / 0.0}})
    EXPECT_THROW(w.ev.polynomial(a, c, PolynomialBasis::chebyshev, lo, hi), ParameterError);
  EXPECT_THROW(w.ev.polynomial(w.ev.square_lazy(a), c), StateError);
}

CRENEL_FAST_DEVICE_SUITE(CkksPolynomial);

}  // namespace
}  // namespace crenel::ckks
