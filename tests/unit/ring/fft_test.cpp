// Tables of the negacyclic double-precision transform.
#include "ring/fft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <set>

#include "crenel/core/error.h"
#include "support/random.h"

namespace crenel::test {
namespace {

using ring::Complex;
using ring::NegacyclicFft;

bool same_bits(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }

TEST(Fft, RefusesOtherDegrees) {
  for (const u32 log_n : {0u, 2u, 13u, 40u}) {
    try {
      NegacyclicFft fft(log_n);
      FAIL() << "log_n = " << log_n << " was accepted";
    } catch (const ParameterError& e) {
      EXPECT_EQ(e.field("log_n"), cat(log_n));
    }
  }
}

TEST(Fft, RootsOfUnityOfEveryRing) {
  for (const u32 log_order : {0u, 1u, 2u, 3u, 4u, 11u, 18u}) {
    const std::vector<Complex> roots = ring::roots_of_unity(log_order);
    const u32 order = 1u << log_order;
    ASSERT_EQ(roots.size(), order);
    for (u32 j = 0; j < order; j += 1 + j / 64) {
      const long double angle = 2 * std::numbers::pi_v<long double> * j / order;
      const auto near = [](double got, long double expected) {
        const long double unit = std::max(std::abs(expected), 1e-6L) * 0x1p-53L;
        EXPECT_LE(std::abs(got - expected), 1.01L * unit + 1e-18L) << got;
      };
      near(roots[j].re, std::cos(angle));
      near(roots[j].im, std::sin(angle));
      EXPECT_TRUE(same_bits(roots[(order - j) % order], {roots[j].re, 0.0 - roots[j].im}));
    }
  }
}

// Correctly rounded but for rare ties: half a unit in the last place of long double's value.
TEST(Fft, RootsAreAccurate) {
  for (u32 log_n = 3; log_n <= 12; ++log_n) {
    const NegacyclicFft fft(log_n);
    const u32 n = 1u << log_n;
    ASSERT_EQ(fft.roots.size(), 2 * n);
    for (u32 j = 0; j < 2 * n; ++j) {
      const long double angle = std::numbers::pi_v<long double> * j / n;
      const auto near = [](double got, long double expected) {
        const long double unit = std::max(std::abs(expected), 1e-3L) * 0x1p-53L;
        EXPECT_LE(std::abs(got - expected), 1.01L * unit + 1e-18L) << got;
      };
      near(fft.roots[j].re, std::cos(angle));
      near(fft.roots[j].im, std::sin(angle));
    }
  }
}

TEST(Fft, RootsAreSymmetricToTheBit) {
  for (u32 log_n = 3; log_n <= 12; ++log_n) {
    const NegacyclicFft fft(log_n);
    const u32 n = 1u << log_n;
    for (u32 j = 0; j < 2 * n; ++j) {
      const Complex z = fft.roots[j];
      EXPECT_TRUE(same_bits(fft.roots[(j + n / 2) % (2 * n)], {-z.im, z.re}));
      EXPECT_TRUE(same_bits(fft.roots[(2 * n - j) % (2 * n)], {z.re, -z.im}));
      EXPECT_TRUE(same_bits(fft.roots[(5 * n / 2 - j) % (2 * n)], {z.im, z.re}));
    }
  }
}

// zeta(d + 1, 2b) = w(d, b) and zeta(d + 1, 2b + 1) = -w(d, b), w^2 = zeta.
TEST(Fft, TwiddlesFollowTheTree) {
  for (u32 log_n = 3; log_n <= 12; ++log_n) {
    const NegacyclicFft fft(log_n);
    const u32 m = fft.points();
    ASSERT_EQ(fft.twiddles.size(), m);
    for (u32 width = 1; width < m; width *= 2)
      for (u32 b = 0; b < width; ++b) {
        const Complex w = fft.twiddles[width + b];
        std::complex<double> zeta(0.0, 1.0);
        if (width > 1) {
          const Complex up = fft.twiddles[width / 2 + b / 2];
          zeta = b % 2 ? std::complex(-up.re, -up.im) : std::complex(up.re, up.im);
        }
        EXPECT_NEAR(std::abs(std::complex(w.re, w.im) * std::complex(w.re, w.im) - zeta), 0, 1e-15);
        if (b % 2) {
          const Complex even = fft.twiddles[width + b - 1];
          EXPECT_TRUE(same_bits(w, {-even.im, even.re}));
        }
      }
  }
}

TEST(Fft, ExponentsAreTheRootsOfThePolynomial) {
  for (u32 log_n = 3; log_n <= 12; ++log_n) {
    const NegacyclicFft fft(log_n);
    ASSERT_EQ(fft.exponents.size(), fft.points());
    std::set<u32> seen;
    for (const u32 e : fft.exponents) {
      EXPECT_EQ(e % 4, 1u);
      EXPECT_LT(e, 2u << log_n);
      seen.insert(e);
    }
    EXPECT_EQ(seen.size(), fft.points());
  }
}

// The tree evaluates at exp(i pi exponents[f] / N).
TEST(Fft, TreeEvaluatesAtTheExponents) {
  Rng rng = test_rng();
  for (const u32 log_n : {3u, 4u, 6u, 9u}) {
    const NegacyclicFft fft(log_n);
    const u32 n = 1u << log_n, m = fft.points();
    std::vector<double> a(n);
    for (auto& x : a) x = static_cast<double>(rng() % 2001) - 1000;
    std::vector<std::complex<double>> z(m);
    for (u32 j = 0; j < m; ++j) z[j] = {a[j], a[j + m]};
    for (u32 width = 1; width < m; width *= 2)
      for (u32 b = 0; b < width; ++b) {
        const u32 half = m / width / 2;
        const std::complex<double> w(fft.twiddles[width + b].re, fft.twiddles[width + b].im);
        for (u32 j = 2 * half * b; j < 2 * half * b + half; ++j) {
          const auto lo = z[j], hi = w * z[j + half];
          z[j] = lo + hi, z[j + half] = lo - hi;
        }
      }
    for (u32 f = 0; f < m; ++f) {
      std::complex<double> value = 0;
      for (u32 j = 0; j < n; ++j)
        value += a[j] * std::polar(1.0, std::numbers::pi * (fft.exponents[f] * j % (2 * n)) / n);
      EXPECT_NEAR(std::abs(value - z[f]), 0, 1e-8) << "leaf " << f;
    }
  }
}

}  // namespace
}  // namespace crenel::test
