// External products by the double-precision transform: the operations that device/torus/kernels.h
// states, in that order. std::fma and -ffp-contract=off make the bits the same everywhere.
#include <cmath>
#include <cstring>

#include "backends/ref/torus/kernels.h"

namespace crenel::backend::ref {
namespace {

constexpr double kMagic = 0x1.8p52;

using Points = std::vector<Complex>;

Complex multiply_add(Complex a, Complex b, Complex sum) {
  return {std::fma(-a.im, b.im, std::fma(a.re, b.re, sum.re)),
          std::fma(a.im, b.re, std::fma(a.re, b.im, sum.im))};
}

class ApproxProduct final : public TorusProduct {
 public:
  explicit ApproxProduct(const TorusPlan& plan) : plan_(plan), fft_(plan.log_n) {}

  u64 element_bytes() const override {
    return plan_.digit_pieces() * plan_.key_polys() * points() * sizeof(Complex);
  }

  // [P, D][digit][piece][row][out][M]; of groups [S][row][out][M].
  void load(void* element, const i64* keys) const override {
    const u64 n = plan_.ring_dim(), square = u64(plan_.polys()) * plan_.polys();
    const u64 second = plan_.digits * square * n;
    Complex* out = static_cast<Complex*>(element);
    if (plan_.group != 0) {
      for (u64 i = 0; i < plan_.key_polys(); ++i, out += points()) {
        const Points values = forward(keys + i * n);
        std::copy(values.begin(), values.end(), out);
      }
      return;
    }
    std::vector<i64> poly(n);
    for (u32 k = 0; k < plan_.keys_per_step(); ++k)
      for (u32 operand = 0; operand < plan_.operands(); ++operand)
        for (u64 i = 0; i < square; ++i, out += points()) {
          const u32 piece = operand % plan_.digit_pieces();
          const i64* const from = keys + (operand / plan_.digit_pieces() * square + i) * n;
          for (u64 c = 0; c < n; ++c) {
            const i64 k0 = weighted(from[c], piece);
            const i64 k1 = plan_.keys_per_step() == 2 ? weighted(from[second + c], piece) : 0;
            poly[c] = k == 0 ? k0 + k1 : k0 - k1;
          }
          const Points values = forward(poly.data());
          std::copy(values.begin(), values.end(), out);
        }
  }

  void multiply(std::vector<i128>& increment, const std::vector<i64>& operands, const void* element,
                std::span<const u32> e) const override {
    const u64 n = plan_.ring_dim(), terms = u64(plan_.operands()) * plan_.polys();
    const Complex* keys = static_cast<const Complex*>(element);
    std::vector<Points> in;
    for (u64 t = 0; t < terms; ++t) in.push_back(forward(&operands[t * n]));
    for (u32 out = 0; out < plan_.polys(); ++out) {
      Points z = plan_.group == 0    ? difference(in, keys, out, e[0])
                 : plan_.differences ? differences(in, keys, out, e)
                                     : bundle_sum(in, keys, out, e);
      inverse(z);
      for (u32 j = 0; j < points(); ++j) {
        increment[out * n + j] = rounded(z[j].re);
        increment[out * n + points() + j] = rounded(z[j].im);
      }
    }
  }

 private:
  u32 points() const { return fft_.points(); }

  Complex root(u32 e, u32 f) const {
    return fft_.roots[e * fft_.exponents[f] % (2 * plan_.ring_dim())];
  }

  Points difference(const std::vector<Points>& in, const Complex* p, u32 out, u32 e) const {
    const Complex* d = p + in.size() * plan_.polys() * points();
    Points z(points());
    for (u32 f = 0; f < points(); ++f) {
      Complex a, b;
      for (u64 t = 0; t < in.size(); ++t) {
        const u64 at = (t * plan_.polys() + out) * points() + f;
        a = multiply_add(in[t][f], p[at], a);
        if (plan_.keys_per_step() == 2) b = multiply_add(in[t][f], d[at], b);
      }
      z[f] = plan_.keys_per_step() == 2 ? ternary(root(e, f), a, b) : ternary(root(e, f), a, a);
    }
    return z;
  }

  // The sum over S > 0 of X^(e_S) - 1 times the products with K_S.
  Points differences(const std::vector<Points>& in, const Complex* keys, u32 out,
                     std::span<const u32> e) const {
    Points z(points());
    for (u32 f = 0; f < points(); ++f)
      for (u32 set = 1; set < e.size(); ++set) {
        Complex a;
        for (u64 t = 0; t < in.size(); ++t) {
          const u64 row = ((set - 1) * in.size() + t) * plan_.polys() + out;
          a = multiply_add(in[t][f], keys[row * points() + f], a);
        }
        const Complex w = root(e[set], f);
        z[f] = set == 1 ? ternary(w, a, a) : multiply_add({w.re - 1.0, w.im}, a, z[f]);
      }
    return z;
  }

  // The products with sum_S X^(e_S) K_S.
  Points bundle_sum(const std::vector<Points>& in, const Complex* keys, u32 out,
                    std::span<const u32> e) const {
    const u64 key_points = in.size() * plan_.polys() * points();
    Points z(points());
    for (u32 f = 0; f < points(); ++f)
      for (u64 t = 0; t < in.size(); ++t) {
        const Complex* const key = keys + (t * plan_.polys() + out) * points() + f;
        Complex bundle = key[0];
        for (u32 set = 1; set < e.size(); ++set)
          bundle = multiply_add(root(e[set], f), key[set * key_points], bundle);
        z[f] = multiply_add(in[t][f], bundle, z[f]);
      }
    return z;
  }

  // What multiplies a piece of a digit whose key is `key`.
  i64 weighted(i64 key, u32 piece) const {
    if (piece == 0) return key;
    const i128 q = static_cast<i128>(plan_.modulus);
    const i128 r = (static_cast<i128>(key) << device::piece_log(plan_)) % q;
    return static_cast<i64>(2 * r > q ? r - q : 2 * r < -q ? r + q : r);
  }

  // (c - 1) a + i s b; a binary key has a = b.
  static Complex ternary(Complex root, Complex a, Complex b) {
    const double u = root.re - 1.0, s = root.im;
    return {std::fma(u, a.re, -(s * b.im)), std::fma(u, a.im, s * b.re)};
  }

  Points forward(const i64* poly) const {
    Points z(points());
    for (u32 j = 0; j < points(); ++j)
      z[j] = {static_cast<double>(poly[j]), static_cast<double>(poly[j + points()])};
    for (u32 width = 1; width < points(); width *= 2) {
      const u32 half = points() / width / 2;
      for (u32 b = 0; b < width; ++b)
        for (u32 j = 2 * half * b; j < 2 * half * b + half; ++j) {
          const Complex lo = z[j];
          const Complex x = multiply_add(fft_.twiddles[width + b], z[j + half], lo);
          z[j] = x;
          z[j + half] = {std::fma(2.0, lo.re, -x.re), std::fma(2.0, lo.im, -x.im)};
        }
    }
    return z;
  }

  void inverse(Points& z) const {
    for (u32 width = points() / 2; width >= 1; width /= 2) {
      const u32 half = points() / width / 2;
      for (u32 b = 0; b < width; ++b)
        for (u32 j = 2 * half * b; j < 2 * half * b + half; ++j) {
          const Complex w = fft_.twiddles[width + b], lo = z[j], hi = z[j + half];
          const Complex d{lo.re - hi.re, lo.im - hi.im};
          z[j] = {lo.re + hi.re, lo.im + hi.im};
          z[j + half] = {std::fma(w.im, d.im, w.re * d.re), std::fma(-w.im, d.re, w.re * d.im)};
        }
    }
  }

  i128 rounded(double z) const {
    const double q = static_cast<double>(plan_.modulus);
    const double scale = plan_.path == device::NoisePath::raising
                             ? q / static_cast<double>(plan_.key_modulus()) / points()
                             : 1.0 / points();
    if (!device::reduces_product(plan_))
      return static_cast<i128>(std::fma(z, scale, kMagic) - kMagic);
    const double v = z * scale;
    const double t = std::fma(v, 1.0 / q, kMagic) - kMagic;
    const double r = std::fma(-t, q, v);
    return static_cast<i128>((r + kMagic) - kMagic);
  }

  TorusPlan plan_;
  ring::NegacyclicFft fft_;
};

}  // namespace

std::unique_ptr<TorusProduct> make_approx_product(const TorusPlan& plan) {
  return std::make_unique<ApproxProduct>(plan);
}

}  // namespace crenel::backend::ref
