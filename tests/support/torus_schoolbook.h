// A blind rotation by schoolbook products of 128-bit integers, written from the formulas of
// device/torus/kernels.h alone.
#pragma once

#include <cmath>

#include "support/torus_world.h"

namespace crenel::test {

using Poly = std::vector<i128>;

inline i128 floor_divide(i128 a, i128 b) {  // b > 0
  const i128 q = a / b;
  return a % b < 0 ? q - 1 : q;
}
inline i128 positive(i128 a, i128 m) { return a - floor_divide(a, m) * m; }
inline i128 centre(i128 a, i128 m) {
  const i128 r = positive(a, m);
  return 2 * r >= m ? r - m : r;
}

// X^e a, modulo X^N + 1.
inline Poly shifted(const Poly& a, u64 e) {
  Poly out(a.size());
  for (u64 i = 0; i < a.size(); ++i) {
    const u64 to = (i + e) % (2 * a.size());
    out[to % a.size()] = to < a.size() ? a[i] : -a[i];
  }
  return out;
}

inline void add_product(Poly& sum, const Poly& a, const i64* b, i128 modulus) {
  const u64 n = a.size();
  for (u64 i = 0; i < n; ++i)
    for (u64 j = 0; j < n; ++j) {
      const i128 term = a[i] * b[j];
      sum[(i + j) % n] += i + j < n ? term : -term;
    }
  for (auto& x : sum) x = centre(x, modulus);
}

/// A blind rotation of the host. Products are exact; a derived class may take others.
class Schoolbook {
 public:
  Schoolbook(const TorusPlan& plan, const RotationInput& in) : p_(plan), in_(in) {}
  virtual ~Schoolbook() = default;

  std::vector<u64> blind_rotate() const {
    std::vector<u64> out;
    for (u32 row = 0; row < in_.batch; ++row) append_row(out, row);
    return out;
  }

 protected:
  /// Polynomial `out` of the key's row `term`, counted through [digit][row].
  const i64* key_poly(u32 element, u32 key, u64 term, u32 out) const {
    const u64 terms = u64(p_.digits) * p_.polys();
    const u64 poly = ((u64(element) * p_.keys_per_step() + key) * terms + term) * p_.polys() + out;
    return &in_.key[poly * p_.ring_dim()];
  }

  /// What a step adds to polynomial `out` of the accumulator, of any size; `in` are the digits
  /// [digit][row].
  virtual Poly increment(const std::vector<Poly>& in, u32 element, u32 out, u64 e) const {
    const i128 t = p_.key_modulus(), q = p_.modulus;
    Poly total(p_.ring_dim(), 0);
    for (u32 k = 0; k < p_.keys_per_step(); ++k) {
      Poly sum(p_.ring_dim(), 0);
      for (u64 term = 0; term < in.size(); ++term)
        add_product(sum, in[term], key_poly(element, k, term, out), t);
      const Poly moved = shifted(sum, k == 0 ? e : 2 * p_.ring_dim() - e);
      for (u64 c = 0; c < total.size(); ++c) total[c] += moved[c] - sum[c];
    }
    for (i128& x : total) {
      x = centre(x, t);
      if (p_.path == NoisePath::raising) x = floor_divide(2 * q * x + t, 2 * t);
    }
    return total;
  }

  const TorusPlan& p_;
  const RotationInput& in_;

 private:
  u64 exponent(u32 x) const {
    const u64 two_n = 2 * p_.ring_dim();
    const double exact = static_cast<double>(x) * static_cast<double>(two_n) /
                         std::ldexp(1.0, static_cast<int>(p_.log_lwe_modulus));
    return static_cast<u64>(std::floor(exact + 0.5)) % two_n;  // halves are powers of two: exact
  }
  u32 lut(u32 row, u32 slot) const {
    return in_.index.empty() ? 0 : in_.index[row * p_.slots + slot];
  }

  // digit j (1..) of the centred accumulator, by rounding the quotients.
  std::vector<Poly> operands(const std::vector<Poly>& acc) const {
    const i128 q = p_.modulus, base = i128(1) << p_.base_log;
    std::vector<Poly> out(p_.digits * acc.size(), Poly(p_.ring_dim()));
    for (u64 poly = 0; poly < acc.size(); ++poly)
      for (u64 c = 0; c < p_.ring_dim(); ++c) {
        i128 x = centre(acc[poly][c], q);
        if (p_.path == NoisePath::raising) {
          out[poly][c] = x;
          continue;
        }
        x = floor_divide(2 * x + base, 2 * base);
        for (u32 d = 0; d < p_.digits; ++d) {
          const i128 next = d + 1 < p_.digits ? floor_divide(2 * x + base, 2 * base) : 0;
          out[d * acc.size() + poly][c] = x - next * base;
          x = next;
        }
      }
    return out;
  }

  void step(std::vector<Poly>& acc, u32 element, u64 e) const {
    const auto in = operands(acc);
    for (u32 out = 0; out < p_.polys(); ++out) {
      const Poly change = increment(in, element, out, e);
      for (u64 c = 0; c < change.size(); ++c)
        acc[out][c] = positive(acc[out][c] + change[c], p_.modulus);
    }
  }

  void append_row(std::vector<u64>& out, u32 row) const {
    const u64 n = p_.ring_dim();
    const u32* words = &in_.rows[u64(row) * p_.words()];
    std::vector<Poly> acc(p_.polys(), Poly(n, 0));
    for (u32 j = 0; j < p_.slots; ++j) {
      Poly table(n);
      for (u64 c = 0; c < n; ++c) table[c] = in_.tables[lut(row, j) * n + c];
      acc[p_.glwe_dim + j] = shifted(table, 2 * n - exponent(words[p_.lwe_dim + j]));
    }
    for (u32 i = 0; i < p_.lwe_dim; ++i) step(acc, i, exponent(words[i]));
    const i128 q = p_.modulus;
    const auto push = [&](i128 x) {
      const i128 switch_modulus = i128(1) << p_.log_switch_modulus;
      out.push_back(static_cast<u64>(
          positive(floor_divide(positive(x, q) * switch_modulus + q / 2, q), switch_modulus)));
    };
    for (u64 s = 0; s < in_.outputs; ++s) {
      // coefficient i becomes the constant one of X^-i ACC
      const u64 to_front = (2 * n - s * n / in_.outputs) % (2 * n);
      for (u32 t = 0; t < p_.glwe_dim; ++t) {
        const Poly a = shifted(acc[t], to_front);
        for (u64 c = 0; c < n; ++c) push(c == 0 ? a[0] : -a[n - c]);
      }
      for (u32 j = 0; j < p_.slots; ++j)
        push(shifted(acc[p_.glwe_dim + j], to_front)[0] + i128(in_.offsets[lut(row, j)]));
    }
  }
};

}  // namespace crenel::test
