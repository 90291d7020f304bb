// Fits of functions: coefficients, measured error, depth, and what is refused.
#include "crenel/ckks/chebyshev.h"

#include <cmath>
#include <numeric>

#include "crenel/core/error.h"
#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

double sigmoid(double t) { return 1.0 / (1.0 + std::exp(-t)); }

TEST(ChebyshevFit, ErrorIsTheLargestDistance) {
  for (const auto& [a, b, degree] : {std::tuple{-4.0, 4.0, 15u}, {-1.0, 1.0, 7u}, {0.5, 2.5, 8u}}) {
    const ChebyshevFit fit(sigmoid, a, b, degree);
    EXPECT_EQ(fit.coefficients(), chebyshev_coefficients(sigmoid, a, b, degree));
    double distance = 0.0;
    for (int k = 0; k <= 1000; ++k) {
      const double t = a + (b - a) * k / 1000;
      distance = std::max(distance, std::abs(fit.clear(t) - sigmoid(t)));
    }
    EXPECT_LE(distance, fit.error() * (1 + 1e-3) + 1e-15);
    EXPECT_GT(distance, 0.5 * fit.error());
  }
}

TEST(ChebyshevFit, ClearIsTheSeries) {
  // T_3 on [-2, 2], and a constant.
  const auto cubic = [](double x) { return 4 * std::pow(x / 2, 3) - 3 * (x / 2); };
  const ChebyshevFit fit(cubic, -2, 2, 3), constant([](double) { return 2.0; }, -2, 2, 0);
  for (double x : {-2.0, -0.3, 0.0, 1.7}) EXPECT_NEAR(fit.clear(x), cubic(x), 1e-14);
  EXPECT_EQ(constant.clear(0.7), 2.0);
  EXPECT_EQ(constant.error(), 0.0);
  EXPECT_EQ(constant.depth(), 0u);
}

TEST(ChebyshevFit, DepthCountsTheInterval) {
  const auto sine = [](double x) { return std::sin(x); };
  EXPECT_EQ(ChebyshevFit(sine, -1, 1, 7).depth(), 3u);
  EXPECT_EQ(ChebyshevFit(sine, -2, 2, 7).depth(), 4u);
}

TEST(ChebyshevFit, WhatCannotBeIsRefused) {
  const double inf = std::numeric_limits<double>::infinity(), nan = inf - inf;
  const auto sine = [](double x) { return std::sin(x); };
  for (const auto& [a, b] : {std::pair{1.0, -1.0}, {1.0, 1.0}, {-inf, 1.0}, {0.0, nan}})
    test::expect_error<ParameterError>([&, a = a, b = b] { ChebyshevFit(sine, a, b, 3); });
  test::expect_error<ParameterError>([&] { ChebyshevFit(sine, -1, 1, 1u << 20); });
  test::expect_error<ParameterError>([&] { ChebyshevFit([&](double) { return nan; }, -1, 1, 3); });
  // A pole between the nodes, on the grid.
  const auto e = test::expect_error<ParameterError>(
      [&] { ChebyshevFit([&](double t) { return t == 0.0 ? inf : 1.0 / t; }, 0, 1, 3); });
  EXPECT_EQ(e.field("x"), "0");
}

class ChebyshevEvaluation : public test::SchemeTest {};

TEST_P(ChebyshevEvaluation, OnCiphertextsAndOperands) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const auto x = test::random_reals(rng, w.slots(), -3.0, 3.0);
  const ChebyshevFit fit(sigmoid, -3, 3, 9);
  const Ciphertext c = w.client.encrypt(std::span<const double>(x));
  const Ciphertext explicitly = fit(w.ev, c);
  const Operand conveniently = fit(Operand(w.ev, c.clone()));
  EXPECT_EQ(explicitly.level(), c.level() - fit.depth());
  EXPECT_EQ(conveniently.level(), explicitly.level());
  test::Values expected;
  for (double t : x) expected.push_back(fit.clear(t));
  for (const Ciphertext* result : {&explicitly, &conveniently.ciphertext()})
    EXPECT_LT(test::max_error(w.client.decrypt(*result), expected),
              test::tolerance(w.params(), 16.0));
}

CRENEL_DEVICE_SUITE(ChebyshevEvaluation);

}  // namespace
}  // namespace crenel::ckks
