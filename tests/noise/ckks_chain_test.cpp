// Errors of deep circuits: predicted by propagation, and within the published bounds.
#include "noise/noise_world.h"

namespace crenel::ckks {
namespace {

using namespace test::noise;  // the formulas
using test::Complex;
using test::Values;

double mean_square(const Values& a, const Values& b) {
  double sum = 0.0;
  for (u64 i = 0; i < a.size(); ++i) sum += std::norm(a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}

// Slots on the unit circle keep their absolute value: squaring doubles the error, so its mean
// square is v' = 4 v + fresh at every step.
void squarings(bool merge) {
  auto& w = noise_world();
  const auto& p = w.params();
  Values z = w.values();
  for (auto& v : z) v /= std::abs(v);
  Ciphertext c = w.client.encrypt(z, 13u);
  double v = slot_variance(kErrorVariance + kRounding, w.n(), c.scale());
  for (u32 level = 13; level-- > 0;) {
    const double before = v;
    c = merge ? w.ev.multiply_rescale(c, c) : w.ev.rescale(w.ev.square(c));
    for (auto& x : z) x *= x;
    const double ratio = p.rescale_ratio(level + 1);
    const double fresh = merge ? merged(p, level + 1, w.h)
                               : division(w.h) + key_switch(p, level + 1, w.h) / (ratio * ratio);
    v = 4.0 * before + slot_variance(fresh, w.n(), c.scale());
    const double measured = std::sqrt(mean_square(w.client.decrypt(c), z));
    EXPECT_NEAR(measured / std::sqrt(v), 1.0, 0.1) << "level " << level;
    for (auto& x : z) x /= std::abs(x);  // the clear values must not drift
  }
}

TEST(NoiseChain, ThirteenSquarings) { squarings(false); }
TEST(NoiseChain, ThirteenMergedSquarings) { squarings(true); }

TEST(NoiseChain, ProductChainStaysWithinTheBound) {
  // docs/theory/precision.md, "Operations": depth-13 chain of values in [-1, 1] at 2^40, N = 2^16:
  // 2^-18. The error grows with N (sqrt(N) each from the slots and from the weight of the secret).
  auto& w = noise_world();
  const double bound = std::exp2(-18.0 - (16.0 - w.params().log_n()));
  const auto value = [&] {
    const auto r = test::random_reals(w.rng, w.params().slots());
    return Values(r.begin(), r.end());
  };
  Values z = value();
  Ciphertext c = w.client.encrypt(z, 13u);
  for (u32 level = 13; level-- > 0;) {
    const Values y = value();
    c = w.ev.multiply_rescale(c, w.client.encrypt(y, level + 1));
    z = test::zip_values(z, y, [](Complex a, Complex b) { return a * b; });
    EXPECT_LT(test::max_error(w.client.decrypt(c), z), bound) << level;
  }
}

TEST(NoiseChain, SingleOperationsStayWithinThePublishedBounds) {
  // 2^-26 for sums of secret-key encryptions, 2^-20 for products and rotations, at N = 2^16.
  auto& w = noise_world();
  const Values x = w.values(), y = w.values();
  const Ciphertext a = w.client.encrypt(x, 13u), b = w.client.encrypt(y, 13u);
  const auto sum = test::zip_values(x, y, [](Complex s, Complex t) { return s + t; });
  const auto xy = test::zip_values(x, y, [](Complex s, Complex t) { return s * t; });
  EXPECT_LT(test::max_error(w.client.decrypt(w.ev.add(a, b)), sum), 0x1p-26);
  EXPECT_LT(test::max_error(w.client.decrypt(w.ev.multiply_rescale(a, b)), xy), 0x1p-20);
  EXPECT_LT(test::max_error(w.client.decrypt(w.ev.rotate(a, 1)), test::rolled(x, 1)), 0x1p-20);
}

}  // namespace
}  // namespace crenel::ckks
