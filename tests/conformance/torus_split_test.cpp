// Arithmetic::split against what device/torus/kernels.h says of it: the stated sequence of
// operations, by an own transform here, and exact results where the transform's error is below 1/2.
#include "ring/fft.h"
#include "support/devices.h"
#include "support/torus_schoolbook.h"

namespace crenel::test {
namespace {

using Points = std::vector<ring::Complex>;

constexpr double kMagic = 0x1.8p52;

// The transform as a recursion over the nodes of its tree.
struct Tree {
  explicit Tree(u32 log_n) : fft(log_n) {}

  Points forward(const Poly& a) const {
    Points z(fft.points());
    for (u64 j = 0; j < z.size(); ++j)
      z[j] = {static_cast<double>(a[j]), static_cast<double>(a[j + z.size()])};
    down(z.data(), z.size(), 1);
    return z;
  }
  /// M times the polynomial.
  std::vector<double> inverse(Points z) const {
    up(z.data(), z.size(), 1);
    std::vector<double> a;
    for (const auto& x : z) a.push_back(x.re);
    for (const auto& x : z) a.push_back(x.im);
    return a;
  }

  ring::NegacyclicFft fft;

 private:
  void down(ring::Complex* z, u64 count, u64 node) const {
    if (count == 1) return;
    const ring::Complex w = fft.twiddles[node];
    for (u64 j = 0; j < count / 2; ++j) {
      const ring::Complex lo = z[j], hi = z[j + count / 2];
      const double re = std::fma(-w.im, hi.im, std::fma(w.re, hi.re, lo.re));
      const double im = std::fma(w.im, hi.re, std::fma(w.re, hi.im, lo.im));
      z[j] = {re, im};
      z[j + count / 2] = {std::fma(2.0, lo.re, -re), std::fma(2.0, lo.im, -im)};
    }
    down(z, count / 2, 2 * node);
    down(z + count / 2, count / 2, 2 * node + 1);
  }
  void up(ring::Complex* z, u64 count, u64 node) const {
    if (count == 1) return;
    up(z, count / 2, 2 * node);
    up(z + count / 2, count / 2, 2 * node + 1);
    const ring::Complex w = fft.twiddles[node];
    for (u64 j = 0; j < count / 2; ++j) {
      const ring::Complex lo = z[j], hi = z[j + count / 2];
      const double re = lo.re - hi.re, im = lo.im - hi.im;
      z[j] = {lo.re + hi.re, lo.im + hi.im};
      z[j + count / 2] = {std::fma(w.im, im, w.re * re), std::fma(-w.im, re, w.re * im)};
    }
  }
};

// Digits in two pieces by doubles, all else as the schoolbook has it.
class SplitRotation final : public Schoolbook {
 public:
  SplitRotation(const TorusPlan& plan, const RotationInput& in)
      : Schoolbook(plan, in), tree_(plan.log_n), weight_(i64(1) << device::piece_log(plan)) {}

 protected:
  Poly increment(const std::vector<Poly>& in, u32 element, u32 out, u64 e) const override {
    const u64 n = p_.ring_dim();
    Points a(n / 2), b(n / 2);
    for (u32 digit = 0; digit < p_.digits; ++digit)
      for (const bool upper : {false, true})
        for (u64 term = u64(digit) * p_.polys(); term < u64(digit + 1) * p_.polys(); ++term) {
          const Points x = tree_.forward(piece(in[term], upper));
          const Points p = tree_.forward(key_sum(element, term, out, upper, 1));
          const Points d = tree_.forward(key_sum(element, term, out, upper, -1));
          for (u64 f = 0; f < n / 2; ++f) {
            a[f] = multiply_add(x[f], p[f], a[f]);
            b[f] = multiply_add(x[f], d[f], b[f]);
          }
        }
    for (u64 f = 0; f < n / 2; ++f) {
      const ring::Complex root = tree_.fft.roots[e * tree_.fft.exponents[f] % (2 * n)];
      const double u = root.re - 1, s = root.im;
      a[f] = {std::fma(u, a[f].re, -(s * b[f].im)), std::fma(u, a[f].im, s * b[f].re)};
    }
    Poly change;
    for (const double z : tree_.inverse(a)) change.push_back(reduced(z));
    return change;
  }

 private:
  // x = lo + 2^p hi.
  Poly piece(Poly digit, bool upper) const {
    for (i128& x : digit) {
      const i128 hi = floor_divide(2 * x + weight_, 2 * weight_);
      x = upper ? hi : x - hi * weight_;
    }
    return digit;
  }

  // K0 + sign K1 of the keys that a piece multiplies; a binary key has no K1.
  Poly key_sum(u32 element, u64 term, u32 out, bool upper, i64 sign) const {
    Poly sum(p_.ring_dim(), 0);
    for (u32 k = 0; k < p_.keys_per_step(); ++k)
      for (u64 c = 0; c < sum.size(); ++c) {
        const i128 key = key_poly(element, k, term, out)[c];
        sum[c] += (k == 0 ? 1 : sign) * (upper ? centre(key * weight_, p_.modulus) : key);
      }
    return sum;
  }

  static ring::Complex multiply_add(ring::Complex x, ring::Complex y, ring::Complex sum) {
    return {std::fma(-x.im, y.im, std::fma(x.re, y.re, sum.re)),
            std::fma(x.im, y.re, std::fma(x.re, y.im, sum.im))};
  }

  i128 reduced(double z) const {
    const double q = static_cast<double>(p_.modulus);
    const double v = z * (1 / static_cast<double>(p_.ring_dim() / 2));
    const double t = std::fma(v, 1 / q, kMagic) - kMagic;
    return static_cast<i128>((std::fma(-t, q, v) + kMagic) - kMagic);
  }

  Tree tree_;
  i128 weight_;
};

TorusPlan split_plan(u32 lwe_dim, u32 glwe_dim, u32 slots, u32 log_n, u32 bits, u32 base_log,
                     u32 digits) {
  TorusPlan plan = gadget_plan(lwe_dim, glwe_dim, slots, log_n, 2, bits, base_log, digits);
  plan.arithmetic = device::Arithmetic::split;
  plan.log_switch_modulus = 40, plan.switch_digits = 8;  // shows as much of Q as there is
  return plan;
}

// Digits of odd and even size, several of them, a last one wider or narrower than a base.
TEST(TorusSplit, IsTheStatedSequence) {
  Rng rng = test_rng();
  for (const u32 log_n : {3u, 5u, 6u})
    for (TorusPlan plan :
         {split_plan(3, 1, 1, log_n, 27, 27, 1), split_plan(3, 1, 2, log_n, 25, 25, 1),
          split_plan(3, 2, 1, log_n, 27, 14, 3), split_plan(3, 1, 1, log_n, 20, 13, 2),
          split_plan(3, 1, 1, log_n, 27, 5, 9)})
      for (const auto secret : {LweSecret::ternary, LweSecret::binary}) {
        plan.secret = secret;
        SCOPED_TRACE(describe(plan));
        const auto in = rotation_input(plan, 2, 2, true, rng);
        const TorusWorld world(device::make_ref_device(), plan);
        ASSERT_EQ(first_difference(world.blind_rotate(in), SplitRotation(plan, in).blind_rotate()),
                  "");
      }
}

class TorusSplitMeaning : public DeviceTest {
 protected:
  void expect_exact(TorusPlan plan, const RotationInput& in) const {
    SCOPED_TRACE(describe(plan));
    const auto split = TorusWorld(device_, plan).blind_rotate(in);
    plan.arithmetic = device::Arithmetic::exact;
    ASSERT_EQ(first_difference(split, TorusWorld(device_, plan).blind_rotate(in)), "");
  }
};
CRENEL_DEVICE_SUITE(TorusSplitMeaning);

// Q of 31 bits, products whose error stays below 1/2: the integers themselves, all bits of them.
TEST_P(TorusSplitMeaning, SmallErrorsAreRoundedAway) {
  Rng rng = test_rng();
  for (const u32 log_n : {5u, 8u, 10u, 11u})
    for (TorusPlan plan :
         {split_plan(4, 1, 1, log_n, 16, 16, 1), split_plan(4, 1, 2, log_n, 16, 10, 2)})
      for (const auto secret : {LweSecret::ternary, LweSecret::binary}) {
        plan.secret = secret;
        ASSERT_LT(14 * device::transform_error_std(plan), 0.5);
        expect_exact(plan, rotation_input(plan, 2, 2, true, rng));
      }
}

// G4's digits and modulus, and keys so small that no product needs a reduction, neither with the
// lower pieces nor, times 2^p, with the upper ones.
TEST_P(TorusSplitMeaning, SmallKeysGiveTheIntegers) {
  Rng rng = test_rng();
  for (const u32 log_n : {5u, 10u, 11u})
    for (TorusPlan plan :
         {split_plan(4, 1, 1, log_n, 27, 27, 1), split_plan(4, 1, 2, log_n, 27, 18, 2)})
      for (const auto secret : {LweSecret::ternary, LweSecret::binary}) {
        plan.secret = secret;
        auto in = rotation_input(plan, 2, 2, true, rng);
        for (i64& x : in.key) x %= 1000;
        expect_exact(plan, in);
      }
}

}  // namespace
}  // namespace crenel::test
