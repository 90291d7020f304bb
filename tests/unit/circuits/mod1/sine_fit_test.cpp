// The numbers of EvalMod: distribution of the integers, fit, arcsine.
#include "circuits/mod1/sine_fit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>

#include "crenel/core/error.h"

namespace crenel::circuits {
namespace {

constexpr double kTwoPi = 6.283185307179586476925;

TEST(Mod1Integers, SmallWeightsByHand) {
  EXPECT_EQ(integer_distribution(1, 1), (std::vector<double>{0, 1, 0}));
  EXPECT_EQ(integer_distribution(2, 2), (std::vector<double>{0, 0.125, 0.75, 0.125, 0}));
  // Density of four uniforms at -1, 0, 1.
  const auto p = integer_distribution(3, 1);
  EXPECT_DOUBLE_EQ(p[0], 1.0 / 6);
  EXPECT_DOUBLE_EQ(p[1], 2.0 / 3);
  EXPECT_DOUBLE_EQ(p[2], 1.0 / 6);
}

TEST(Mod1Integers, MomentsAndSymmetry) {
  for (u32 h : {8u, 31u, 32u, 64u, 192u, 1024u}) {
    SCOPED_TRACE(h);
    const u32 range = h / 2 + 1;
    const auto p = integer_distribution(h, range);
    double sum = 0, square = 0, fourth = 0;
    for (u64 k = 0; k < p.size(); ++k) {
      const double i = static_cast<double>(k) - range;
      sum += p[k];
      square += i * i * p[k];
      fourth += i * i * i * i * p[k];
      EXPECT_NEAR(p[k], p[p.size() - 1 - k], 1e-15 * p[k]);
    }
    // B-splines reproduce moments of the uniforms (h >= 4): variance v = (h + 1) / 12, fourth
    // moment 3 v^2 - (h + 1) / 120.
    const double v = (h + 1) / 12.0;
    EXPECT_NEAR(sum, 1.0, 1e-14);
    EXPECT_NEAR(square, v, 1e-12 * v);
    EXPECT_NEAR(fourth, 3 * v * v - (h + 1) / 120.0, 1e-12 * v * v);
  }
}

TEST(Mod1Integers, TailsKeepTheirDigits) {
  // |I| = h / 2 needs the sum of h uniforms in the last half unit of its range: (1/2)^h / h!.
  const auto p = integer_distribution(32, 16);
  EXPECT_NEAR(std::log(p[0]), -32 * std::log(2.0) - std::lgamma(33.0), 1e-11);
  EXPECT_NEAR(std::log(integer_distribution(128, 64)[0]), -128 * std::log(2.0) - std::lgamma(129.0),
              1e-10);
}

TEST(Mod1Integers, FailureProbabilities) {
  // docs/theory/bootstrapping.md, "Failure".
  EXPECT_NEAR(log2_overflow_probability(32, 16, 1 << 16), -132.66, 0.01);
  EXPECT_NEAR(log2_overflow_probability(32, 14, 1 << 16), -58, 0.5);
  EXPECT_NEAR(log2_overflow_probability(32, 13, 1 << 16), -42.8, 0.05);
  EXPECT_NEAR(log2_overflow_probability(32, 12, 1 << 16), -31, 0.5);
  EXPECT_NEAR(log2_overflow_probability(32, 16, 1), -148.66, 0.01);
  EXPECT_EQ(log2_overflow_probability(32, 17, 1 << 16), -INFINITY);
  EXPECT_NEAR(log2_overflow_probability(32, 1, 1 << 16), 0.0, 1e-9);
  EXPECT_EQ(log2_overflow_probability(32, 0, 1), 0.0);
  EXPECT_LT(log2_overflow_probability(1024, 500, 1), -2000);  // beyond the exponents of double
}

// Another fit, made in multiple precision with Gaussian weights: T_0, T_2, .. T_30.
const std::vector<double> kListed{
    0.1251771527935109631045911,      0.2894467809468351376103638,
    0.362733276206186370984306,       0.3011136844023691824521598,
    -0.1055020477719122846584651,     -0.4358836482596220357791085,
    0.3748301213348072575789977,      -0.1482083104431915272412262,
    0.03665580116818610691119731,     -0.006387496397406654146121506,
    0.0008371956443497149768259076,   -0.00008630418112266035589874046,
    0.000007141216851177608925787802, -0.0000005120201141529503178516134,
    2.446153103531768037040473e-8,    -2.234574851420014553751307e-9};

std::vector<double> listed() {
  std::vector<double> c(31, 0.0);
  for (u64 k = 0; k < kListed.size(); ++k) c[2 * k] = kListed[k];
  return c;
}

Mod1Params listed_params() {
  Mod1Params p;
  p.width = 16;
  return p;
}

TEST(Mod1Fit, ListedCoefficientsHaveTheListedErrors) {
  const FitError e = fit_error(listed_params(), listed());
  EXPECT_LT(std::log2(e.rms), -45.7);  // listed from the worst fraction; rms over it is lower
  EXPECT_GT(std::log2(e.rms), -46.7);
  for (u32 i = 0; i < 8; ++i) EXPECT_LT(std::log2(e.by_integer[i]), -41.9) << i;
  EXPECT_NEAR(std::log2(e.by_integer[11]), -31.0, 0.1);
  EXPECT_NEAR(std::log2(e.by_integer[13]), -27.1, 0.1);
  EXPECT_NEAR(std::log2(e.by_integer[15]), -29.2, 0.1);
}

TEST(Mod1Fit, FitOfTheListedInterval) {
  const Mod1Params params = listed_params();
  const auto c = fit_mod1(params);
  ASSERT_EQ(c.size(), 31u);
  for (u32 k = 1; k < c.size(); k += 2) EXPECT_EQ(c[k], 0.0);
  // The list was fitted with Gaussian weights, whose tails are heavier than those of P(I): the two
  // differ by a polynomial that is tiny on the frequent integers and 2^-27 only on |I| > 10. In the
  // gaps between the intervals, where nothing is asked of a fit, it grows to some 2^-18.
  for (u64 k = 0; k < kListed.size(); ++k) EXPECT_NEAR(c[2 * k], kListed[k], 0x1p-17) << k;

  const FitError e = fit_error(params, c), other = fit_error(params, listed());
  EXPECT_LT(e.rms, 1.05 * other.rms);
  EXPECT_LT(std::log2(e.rms), -48.0);
  EXPECT_LT(std::abs(e.mean), 0.25 * e.rms);
  for (u32 i = 0; i < 8; ++i) EXPECT_LT(std::log2(e.by_integer[i]), -41.0) << i;
  for (u32 i = 8; i < 11; ++i) EXPECT_LT(std::log2(e.by_integer[i]), -35.0) << i;
  for (u32 i = 11; i < 16; ++i) EXPECT_LT(std::log2(e.by_integer[i]), -23.0) << i;
  EXPECT_EQ(e.worst, *std::max_element(e.by_integer.begin(), e.by_integer.end()));
}

// The interval is a choice of basis: where it ends makes no difference to what is fitted.
TEST(Mod1Fit, IntervalDoesNotChangeTheFit) {
  const FitError narrow = fit_error({}, fit_mod1({})),
                 wide = fit_error(listed_params(), fit_mod1(listed_params()));
  EXPECT_NEAR(std::log2(narrow.rms), std::log2(wide.rms), 0.1);
  for (u32 i = 0; i < 16; ++i)  // doubles hold coefficients to 2^-55, which T_30(1.47) enlarges
    EXPECT_NEAR(narrow.by_integer[i], wide.by_integer[i], 0x1p-44 + 0.05 * wide.by_integer[i]) << i;
}

TEST(Mod1Fit, EvaluatesToTheSine) {
  // By Clenshaw in double, as a backend would: an independent evaluation of the same numbers.
  const auto c = fit_mod1({});
  const double c0 = mod1_amplitude(3);
  EXPECT_DOUBLE_EQ(std::pow(c0, 8), 1 / kTwoPi);
  for (int i = -6; i <= 6; ++i)
    for (double frac : {-0x1p-6, -0x1p-10, 0.0, 0x1p-12, 0x1p-5}) {
      const double y = (i + frac - 0.25) / Mod1Params().width;
      double b1 = 0, b2 = 0;
      for (u64 k = c.size(); k-- > 1;) {
        const double b = c[k] + 2 * y * b1 - b2;
        b2 = b1;
        b1 = b;
      }
      double v = c[0] + y * b1 - b2, power = c0;
      for (int r = 0; r < 3; ++r) v = 2 * v * v - (power *= power);
      EXPECT_NEAR(v, std::sin(kTwoPi * frac) / kTwoPi, 0x1p-40) << i << " " << frac;
    }
}

TEST(Mod1Fit, StaysGoodBeyondTheRadius) {
  // The constant 1 at rho = 2 has a fraction of 1/4, 2^8 times the radius of the fit.
  Mod1Params wide;
  wide.fit_radius = 0.25;
  EXPECT_LT(std::log2(fit_error(wide, fit_mod1({})).rms), -46.0);
}

TEST(Mod1Fit, HigherDegreesReachDouble) {
  // In exact arithmetic uniform fits reach 2^-38, 2^-60, 2^-79. Coefficients near 1/2 in doubles
  // leave about 16 errors of 2^-56 rms, and double angles multiply them by up to 8: 2^-50 or so.
  Mod1Params p;
  p.fit_radius = 0x1p-8;
  p.width = 16;
  const double bounds[] = {-51.0, -51.5, -51.5};
  const u32 degrees[] = {32, 40, 46};
  for (u32 k = 0; k < 3; ++k) {
    p.degree = degrees[k];
    EXPECT_LT(std::log2(fit_error(p, fit_mod1(p)).rms), bounds[k]) << p.degree;
  }
  // Nearly uniform weights: then the worst integer is close to the others.
  p.secret_weight = 1024;
  p.degree = 32;
  EXPECT_LT(std::log2(fit_error(p, fit_mod1(p)).worst), -36.0);
  p.degree = 40;
  EXPECT_LT(std::log2(fit_error(p, fit_mod1(p)).worst), -48.0);
}

TEST(Mod1Fit, OtherShapes) {
  const Mod1Params shapes[] = {{12, 22, 3, 32, 0x1p-10},
                               {16, 48, 2, 32, 0x1p-8, 16},
                               {28, 56, 3, 192, 0x1p-8, 28},
                               {4, 12, 3, 6, 0x1p-8, 4}};
  for (const auto& p : shapes)
    EXPECT_LT(std::log2(fit_error(p, fit_mod1(p)).rms), -29.0) << p.range << " " << p.degree;
}

void expect_rejected(const Mod1Params& p, const std::string& field) {
  try {
    fit_mod1(p);
    ADD_FAILURE() << field;
  } catch (const ParameterError& e) {
    EXPECT_NE(e.field(field), "") << e.what();
  }
}

TEST(Mod1Fit, RefusesWhatCannotBeFitted) {
  expect_rejected({16, 28, 3, 32, 0x1p-10}, "degree");
  expect_rejected({16, 31, 3, 32, 0x1p-10}, "degree");
  expect_rejected({16, 62, 3, 32, 0x1p-10}, "degree");
  expect_rejected({1, 2, 3, 32, 0x1p-10}, "range");
  expect_rejected({16, 30, 17, 32, 0x1p-10}, "double_angles");
  expect_rejected({16, 30, 3, 0, 0x1p-10}, "secret_weight");
  expect_rejected({16, 30, 3, 2048, 0x1p-10}, "secret_weight");
  expect_rejected({16, 30, 3, 32, 0.0}, "fit_radius");
  expect_rejected({16, 30, 3, 32, 0.5}, "fit_radius");
  expect_rejected({16, 30, 3, 32, 0x1p-10, 0.0}, "width");
  expect_rejected({16, 30, 3, 32, 0x1p-10, 8.0}, "width");  // T_30(2) = 2^56
  EXPECT_THROW(fit_error({}, std::vector<double>(30)), ParameterError);
}

TEST(Mod1Arcsine, Series) {
  const double t = kTwoPi * kTwoPi;
  EXPECT_EQ(arcsine_series(0), std::vector<double>{1.0});
  EXPECT_EQ(arcsine_series(1), std::vector<double>{1.0});
  EXPECT_EQ(arcsine_series(5).size(), 3u);
  const auto s = arcsine_series(7);
  ASSERT_EQ(s.size(), 4u);
  EXPECT_DOUBLE_EQ(s[1], t / 6);
  EXPECT_DOUBLE_EQ(s[2], 3 * t * t / 40);
  EXPECT_DOUBLE_EQ(s[3], 15 * t * t * t / 336);
  for (u32 degree : {2u, 4u, 9u}) EXPECT_THROW(arcsine_series(degree), ParameterError);
}

}  // namespace
}  // namespace crenel::circuits
