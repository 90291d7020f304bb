// Sums, constants and products against the clear computation.
#include "crenel/ckks/evaluator.h"

#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using test::Complex;
using test::Values;

constexpr Complex kI(0.0, 1.0);

class CkksEvaluator : public test::SchemeTest {
 protected:
  void expect_values(test::World& w, const Ciphertext& c, const Values& expected,
                     double operations = 1.0) {
    EXPECT_LT(test::max_error(w.client.decrypt(c), expected),
              test::tolerance(w.params(), operations));
  }
};

TEST_P(CkksEvaluator, AddSubNegate) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots()), y = test::random_values(rng, w.slots());
  const Ciphertext a = w.client.encrypt(x), b = w.client.encrypt(y);
  const Plaintext p = w.context.encode(y);
  const auto sum = test::zip_values(x, y, [](Complex s, Complex t) { return s + t; });
  const auto difference = test::zip_values(x, y, [](Complex s, Complex t) { return s - t; });
  expect_values(w, w.ev.add(a, b), sum);
  expect_values(w, w.ev.sub(a, b), difference);
  expect_values(w, w.ev.add(a, p), sum);
  expect_values(w, w.ev.sub(a, p), difference);
  expect_values(w, w.ev.negate(a), test::map_values(x, [](Complex s) { return -s; }));
  expect_values(w, w.ev.sub(a, a), Values(x.size()));
}

TEST_P(CkksEvaluator, ConstantsAreAddedAtEveryLevelAndScale) {
  auto& w = world("toy-boot40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots());
  for (u32 level : {0u, 5u, w.params().max_level()})
    for (Complex c : {Complex(0.5), Complex(-3.0), Complex(0.25, -1.5), kI, Complex(0.0)}) {
      const auto expected = test::map_values(x, [c](Complex v) { return v + c; });
      expect_values(w, w.ev.add(w.client.encrypt(x, level), c), expected);
    }
  const Ciphertext product = w.ev.square(w.client.encrypt(x, 5u));  // scale 2^80
  expect_values(w, w.ev.add(product, Complex(0.5, 2.0)),
                test::map_values(x, [](Complex v) { return v * v + Complex(0.5, 2.0); }));
}

TEST_P(CkksEvaluator, GaussianIntegers) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots());
  const Ciphertext a = w.client.encrypt(x);
  for (auto [re, im] : {std::pair<i64, i64>{3, 0}, {-7, 0}, {0, 1}, {0, -1}, {2, -5}, {0, 0}}) {
    const Complex factor(static_cast<double>(re), static_cast<double>(im));
    const Ciphertext c = w.ev.multiply_integer(a, re, im);
    EXPECT_EQ(c.level(), a.level());
    EXPECT_EQ(c.scale(), a.scale());
    expect_values(w, c, test::map_values(x, [factor](Complex v) { return v * factor; }), 2.0);
  }
  // i^4 = 1 exactly.
  auto turned = w.ev.multiply_integer(a, 0, 1);
  for (int k = 0; k < 3; ++k) turned = w.ev.multiply_integer(turned, 0, 1);
  EXPECT_EQ(w.client.decrypt(turned), w.client.decrypt(a));
}

TEST_P(CkksEvaluator, ConstantProductsLandOnTheCanonicalScale) {
  for (const char* name : every_scale()) {
    auto& w = world(name);
    auto rng = test::test_rng();
    const Values x = test::random_values(rng, w.slots());
    for (u32 level = 1; level <= w.params().max_level(); ++level)
      for (Complex c : {Complex(-0.75), Complex(0.3, 0.6)}) {
        const Ciphertext r = w.ev.rescale(w.ev.multiply(w.client.encrypt(x, level), c));
        EXPECT_EQ(r.level(), level - 1);
        EXPECT_EQ(r.scale(), w.params().scale(level - 1));
        expect_values(w, r, test::map_values(x, [c](Complex v) { return v * c; }));
      }
  }
}

TEST_P(CkksEvaluator, ConstantProductsAtAGivenScale) {
  auto& w = world("s40");
  const Values x(w.slots(), Complex(0.5, 0.25));
  const Ciphertext r = w.ev.multiply(w.client.encrypt(x, 2u), Complex(0.125), 0x1p20);
  EXPECT_EQ(r.scale(), w.params().scale(2) * 0x1p20);
  expect_values(w, r, test::map_values(x, [](Complex v) { return v * 0.125; }));
  const Ciphertext zero =
      w.client.encrypt(x, 0u);  // level 0 has no room for a product of full scale
  EXPECT_EQ(w.ev.multiply(zero, 1.0, 0x1p5).scale(), w.params().scale(0) * 0x1p5);
  EXPECT_THROW(w.ev.multiply(zero, 1.0), StateError);
  EXPECT_THROW(w.ev.square(zero), StateError);
  for (double scale : {0.5, -2.0, std::numeric_limits<double>::quiet_NaN(),
                       std::numeric_limits<double>::infinity()})
    EXPECT_THROW(w.ev.multiply(zero, 1.0, scale), ParameterError) << scale;
  for (double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1e300}) {
    EXPECT_THROW(w.ev.multiply(zero, bad), ParameterError);
    EXPECT_THROW(w.ev.add(zero, Complex(0.0, bad)), ParameterError);
  }
}

TEST_P(CkksEvaluator, PlaintextProducts) {
  auto& w = world("toy-boot40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots()), y = test::random_values(rng, w.slots());
  const auto expected = test::zip_values(x, y, [](Complex s, Complex t) { return s * t; });
  for (u32 level = 1; level <= w.params().max_level(); ++level) {
    // Encoded at rp the product rescales to the scale of the ciphertext.
    const Ciphertext a = w.client.encrypt(x, level);
    const double scale = w.params().rescale_ratio(level);
    const Ciphertext r = w.ev.rescale(w.ev.multiply(a, w.context.encode(y, level, scale)));
    EXPECT_NEAR(r.scale() / a.scale(), 1.0, 1e-12);
    expect_values(w, r, expected);
  }
}

TEST_P(CkksEvaluator, ProductsAtEveryLevelOfEveryScale) {
  auto names = every_scale();
  if (exhaustive()) names.push_back("toy-boot40");
  for (const char* name : names) {
    auto& w = world(name);
    auto rng = test::test_rng();
    const Values x = test::random_values(rng, w.slots()), y = test::random_values(rng, w.slots());
    const auto xy = test::zip_values(x, y, [](Complex s, Complex t) { return s * t; });
    const auto xx = test::map_values(x, [](Complex s) { return s * s; });
    for (u32 level = 1; level <= w.params().normal_top_level(); ++level) {
      SCOPED_TRACE(std::string(name) + " level " + std::to_string(level));
      const Ciphertext a = w.client.encrypt(x, level), b = w.client.encrypt(y, level);
      const Ciphertext product = w.ev.multiply(a, b);
      EXPECT_EQ(product.components(), 2u);
      EXPECT_EQ(product.scale(), a.scale() * b.scale());
      const Ciphertext plain = w.ev.rescale(product), merged = w.ev.multiply_rescale(a, b);
      for (const Ciphertext* c : {&plain, &merged}) {
        EXPECT_EQ(c->level(), level - 1);
        EXPECT_EQ(c->scale(), w.params().scale(level - 1));
        expect_values(w, *c, xy);
      }
      expect_values(w, w.ev.rescale(w.ev.square(a)), xx);
    }
  }
}

TEST_P(CkksEvaluator, BootstrappingLevelsFollowTheirOwnScales) {
  auto& w = world("toy-boot40");
  const auto& p = w.params();
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots());
  const auto xx = test::map_values(x, [](Complex s) { return s * s; });
  for (u32 level = p.normal_top_level() + 1; level <= p.max_level(); ++level) {
    const double scale = p.rescale_ratio(level);  // about 2^50 .. 2^60: the square stays there
    const Ciphertext a = w.client.encrypt(x, level, scale);
    const Ciphertext r = w.ev.multiply_rescale(a, a);
    EXPECT_NEAR(r.scale() / scale, 1.0, 1e-12);
    EXPECT_LT(test::max_error(w.client.decrypt(r), xx), 0x1p-30) << level;
  }
}

TEST_P(CkksEvaluator, LazyProductsSumBeforeRelinearisation) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  Values expected(w.slots());
  std::optional<Ciphertext> sum;
  for (int k = 0; k < 4; ++k) {
    const Values x = test::random_values(rng, w.slots()), y = test::random_values(rng, w.slots());
    const Ciphertext a = w.client.encrypt(x), b = w.client.encrypt(y);
    Ciphertext product = k == 3 ? w.ev.square_lazy(a) : w.ev.multiply_lazy(a, b);
    EXPECT_EQ(product.components(), 3u);
    for (u64 i = 0; i < x.size(); ++i)
      expected[i] += (k == 2 ? -1.0 : 1.0) * x[i] * (k == 3 ? x[i] : y[i]);
    if (!sum)
      sum = std::move(product);
    else
      sum = k == 2 ? w.ev.sub(*sum, product) : w.ev.add(*sum, product);
  }
  const Ciphertext two = w.ev.relinearise(*sum);
  EXPECT_EQ(two.components(), 2u);
  expect_values(w, two, expected, 16.0);
  expect_values(w, w.ev.rescale(two), expected, 16.0);
  expect_values(w, w.ev.relinearise_rescale(*sum), expected, 16.0);
  // Linear operations keep three components; the rescale of three components is one as well.
  expect_values(w, w.ev.negate(w.ev.multiply_integer(*sum, 2)),
                test::map_values(expected, [](Complex v) { return -2.0 * v; }), 8.0);
  // Here the rounding of the third component meets s^2, whose slots |s_j|^2 are exponential with
  // mean h: with rounding r_j of variance v, P(|r_j| |s_j|^2 > T) is about exp(-1.5 (2 T^2 / (h^2
  // v))^(1/3)), far from a Gaussian's tail. 16 operations are exceeded once in a hundred runs, 64
  // once in 2^32.
  expect_values(w, w.ev.rescale(*sum), expected, 64.0);
}

TEST_P(CkksEvaluator, TwoAndThreeComponentsMix) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots());
  const Ciphertext a = w.client.encrypt(x, 4u);
  const Ciphertext three = w.ev.square_lazy(a), two = w.ev.square(a);
  const Values zero(x.size()), twice = test::map_values(x, [](Complex v) { return 2.0 * v * v; });
  expect_values(w, w.ev.add(three, two), twice, 2.0);
  expect_values(w, w.ev.add(two, three), twice, 2.0);
  expect_values(w, w.ev.sub(three, two), zero, 2.0);
  expect_values(w, w.ev.sub(two, three), zero, 2.0);
  EXPECT_EQ(w.ev.add(two, three).components(), 3u);
}

TEST_P(CkksEvaluator, BatchesEqualSingleCiphertexts) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const u64 n = w.slots();
  const Values x = test::random_values(rng, 3 * n), y = test::random_values(rng, 3 * n);
  const Ciphertext a = w.client.encrypt(x, {}, 0.0, 0, 3), b = w.client.encrypt(y, {}, 0.0, 0, 3);
  expect_values(w, w.ev.add(a, b),
                test::zip_values(x, y, [](Complex s, Complex t) { return s + t; }));
  expect_values(w, w.ev.multiply_rescale(a, b),
                test::zip_values(x, y, [](Complex s, Complex t) { return s * t; }));
  expect_values(w, w.ev.rotate(a, 3), test::rolled(x, 3, n));
  expect_values(w, w.ev.conjugate(a), test::map_values(x, [](Complex s) { return std::conj(s); }));
  const i64 steps[] = {0, 1, -2};
  const auto r1 = test::rolled(x, 1, n), r2 = test::rolled(x, -2, n);
  Values sum = x;
  for (u64 i = 0; i < sum.size(); ++i) sum[i] += r1[i] + r2[i];
  expect_values(w, w.ev.rotate_sum(a, steps), sum, 3.0);
  // One plaintext for every row.
  const Values weights = test::random_values(rng, n);
  Values weighted = x;
  for (u64 i = 0; i < weighted.size(); ++i) weighted[i] *= weights[i % n];
  expect_values(w, w.ev.rescale(w.ev.multiply(a, w.context.encode(weights))), weighted);
}

TEST_P(CkksEvaluator, RealnessIsTracked) {
  auto& w = world("s40");
  const std::vector<double> r(8, 0.5);
  const Ciphertext a = w.client.encrypt(r), c = w.client.encrypt(Values(8, kI));
  EXPECT_TRUE(w.ev.multiply(w.ev.add(a, a), a).metadata().real);
  EXPECT_TRUE(w.ev.rotate(w.ev.add(a, Complex(2.0)), 1).metadata().real);
  EXPECT_FALSE(w.ev.add(a, c).metadata().real);
  EXPECT_FALSE(w.ev.add(a, kI).metadata().real);
  EXPECT_FALSE(w.ev.multiply(a, kI).metadata().real);
  EXPECT_FALSE(w.ev.multiply_integer(a, 1, 1).metadata().real);
  EXPECT_FALSE(w.ev.multiply(c, a).metadata().real);
}

TEST_P(CkksEvaluator, RealParametersMultiplyAndRotate) {
  if (!exhaustive()) GTEST_SKIP() << "too slow on ref";
  auto& w = world("leveled-n14-s40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots()), y = test::random_values(rng, w.slots());
  const Ciphertext a = w.client.encrypt(x), b = w.client.encrypt(y);
  EXPECT_GE(w.params().security_bits(), 128.0);
  const auto xy = test::zip_values(x, y, [](Complex s, Complex t) { return s * t; });
  const Ciphertext product = w.ev.multiply_rescale(a, b);
  expect_values(w, product, xy);
  expect_values(w, w.ev.rotate(product, -7), test::rolled(xy, -7), 2.0);
  expect_values(w, w.ev.conjugate(product),
                test::map_values(xy, [](Complex v) { return std::conj(v); }), 2.0);
}

CRENEL_DEVICE_SUITE(CkksEvaluator);

}  // namespace
}  // namespace crenel::ckks
