// Operands, sums and rounding of external products, rows of LWE ciphertexts, and the table of all.
// Included by isa_<isa>.cpp after a vec_*.h.
#pragma once

#include "backends/cpu/torus/exact_impl.h"
#include "backends/cpu/torus/fft_impl.h"

namespace crenel::backend::cpu {
inline namespace CRENEL_CPU_TORUS_ISA {

inline constexpr double kMagic = 0x1.8p52;

// The integer congruent to x modulo 2 half in [-half, half), half a power of two.
inline I centred(I x, I mask, I half) {
  return Real::sub(Real::bit_xor(Real::bit_and(x, mask), half), half);
}

// A digit as the operand or the two operands from `out` on.
inline void store_digit(double* out, u64 stride, I x, const TorusRounding& r) {
  if (r.piece_log == 0) {
    Real::store(out, Real::to_double(x));
    return;
  }
  const i64 range = i64(1) << r.piece_log;
  const I low = centred(x, Real::set1(range - 1), Real::set1(range / 2));
  Real::store(out, Real::to_double(low));
  Real::store(out + stride, Real::to_double(Real::shift_right(Real::sub(x, low), r.piece_log)));
}

inline void decompose_poly(double* out, u64 stride, const i64* acc, const TorusRounding& r) {
  const u64 m = u64(1) << (r.log_n - 1), digit_stride = (r.piece_log == 0 ? 1 : 2) * stride;
  const i64 range = static_cast<i64>(r.raising ? r.modulus : u64(1) << r.base_log);
  const I mask = Real::set1(range - 1), half = Real::set1(range / 2);
  for (u64 j = 0; j < 2 * m; j += kLanes) {
    double* to = out + (j % m) / kLanes * kPair + (j < m ? 0 : kLanes);
    I x = Real::load(acc + j);
    if (r.raising) {
      Real::store(to, Real::to_double(centred(x, mask, half)));
      continue;
    }
    I digit = centred(x, mask, half);  // the lowest one is dropped
    for (u32 d = 0; d + 1 < r.digits; ++d) {
      x = Real::shift_right(Real::sub(x, digit), r.base_log);
      digit = centred(x, mask, half);
      store_digit(to + d * digit_stride, stride, digit, r);
    }
    x = Real::shift_right(Real::sub(x, digit), r.base_log);
    store_digit(to + (r.digits - 1) * digit_stride, stride, x, r);
  }
}

inline void accumulate_poly(i64* acc, const double* z, const TorusRounding& r) {
  const u64 m = u64(1) << (r.log_n - 1);
  const D magic = Real::set1(kMagic), scale = Real::set1(r.scale);
  const D q = Real::set1(r.modulus_double), q_inverse = Real::set1(r.modulus_inverse);
  const I magic_bits = Real::bits(magic);
  const I modulus = Real::set1(static_cast<i64>(r.modulus));
  const I top = Real::set1(static_cast<i64>(r.modulus / 2)),
          bottom = Real::set1(-static_cast<i64>(r.modulus / 2));
  for (u64 j = 0; j < 2 * m; j += kLanes) {
    const D x = Real::load(z + (j % m) / kLanes * kPair + (j < m ? 0 : kLanes));
    I sum = Real::load(acc + j);
    if (!r.reduces) {
      sum = Real::add(sum, Real::sub(Real::bits(Real::fma(x, scale, magic)), magic_bits));
    } else {
      const D v = Real::mul(x, scale);
      const D t = Real::sub(Real::fma(v, q_inverse, magic), magic);
      const D rest = Real::fnma(t, q, v);
      sum = Real::add(sum, Real::to_integer(Real::sub(Real::add(rest, magic), magic)));
      sum = Real::sub(sum, Real::bit_and(Real::greater(sum, top), modulus));
      sum = Real::add(sum, Real::bit_and(Real::greater(bottom, sum), modulus));
    }
    Real::store(acc + j, sum);
  }
}

// The roots of four vectors of points: the first by look-up, the others by quarter turns of it,
// (0, 2, 1, 3) times e.
inline void roots(Point* out, const TorusSumArgs& args, u64 group, u32 e) {
  const u32* index = args.exponents + group * kLanes;
  const D c = Real::gather(args.cosine, index, 0, e, args.two_n - 1);
  const D s = Real::gather(args.cosine, index, args.two_n / 4 * 3, e, args.two_n - 1);
  const D plus = Real::set1(0.0), minus = Real::set1(-0.0);
  const u32 turns[4] = {0, 2 * e % 4, e % 4, 3 * e % 4};
#pragma GCC unroll 4
  for (u32 t = 0; t < 4; ++t) {
    const bool swapped = turns[t] % 2 != 0;
    const D re = swapped ? s : c, im = swapped ? c : s;
    out[t].re = Real::flip_sign(re, turns[t] == 1 || turns[t] == 2 ? minus : plus);
    out[t].im = Real::flip_sign(im, turns[t] >= 2 ? minus : plus);
  }
}

// c - 1 and s of these roots.
inline void monomials(Point* out, const TorusSumArgs& args, u64 group, u32 e) {
  roots(out, args, group, e);
  const D one = Real::set1(1.0);
#pragma GCC unroll 4
  for (u32 t = 0; t < 4; ++t) out[t].re = Real::sub(out[t].re, one);
}

inline void multiply_add(Point& sum, const Point& in, const Point& key) {
  sum.re = Real::fnma(in.im, key.im, Real::fma(in.re, key.re, sum.re));
  sum.im = Real::fma(in.im, key.re, Real::fma(in.re, key.im, sum.im));
}

// Four vectors of points of `count` rows.
template <u32 count, bool ternary>
inline void sum_group(const TorusSumArgs& args, u64 group, u32 row) {
  constexpr u32 parts = ternary ? 2 : 1;
  Point root[count][4];
  for (u32 r = 0; r < count; ++r)  // of groups of one element c_1, behind c_0 = 0
    monomials(root[r], args, group,
              args.bundle != 0 ? args.exponent[2 * (row + r) + 1] : args.exponent[row + r]);
  for (u32 t = 0; t < 4; ++t) {
    const u64 vector = 4 * group + t, at = vector * args.terms * kPair;
    const double* key = args.key + at * args.outs * parts;
    for (u32 o = 0; o < args.outs; ++o) {
      const Point zero{Real::set1(0.0), Real::set1(0.0)};
      Point a[count], b[count];
      for (u32 r = 0; r < count; ++r) a[r] = b[r] = zero;
      for (u32 i = 0; i < args.terms; ++i, key += parts * kPair) {
        if (row == 0)  // the later rows find the key in L1
          for (u32 line = 0; line < parts * kPair * sizeof(double); line += 64)
            __builtin_prefetch(reinterpret_cast<const char*>(key) + kTorusLead + line, 0, 3);
        const Point p = load_point(key);
        const Point d = ternary ? load_point(key + kPair) : p;
        for (u32 r = 0; r < count; ++r) {
          const Point x = load_point(args.spectra[row + r] + at + i * kPair);
          multiply_add(a[r], x, p);
          if constexpr (ternary) multiply_add(b[r], x, d);
        }
      }
      for (u32 r = 0; r < count; ++r) {
        const Point& w = root[r][t];
        const Point& y = ternary ? b[r] : a[r];
        store_point(args.buffer + (r * args.outs + o) * kPair,
                    {Real::fms(w.re, a[r].re, Real::mul(w.im, y.im)),
                     Real::fma(w.re, a[r].im, Real::mul(w.im, y.re))});
      }
    }
    for (u32 r = 0; r < count; ++r)
      for (u32 o = 0; o < args.outs; ++o)
        store_point(args.spectra[row + r] + (vector * args.outs + o) * kPair,
                    load_point(args.buffer + (r * args.outs + o) * kPair));
  }
}

template <bool ternary>
inline void sum_rows(const TorusSumArgs& args) {
  for (u64 group = 0; group < args.vectors / 4; ++group) {
    u32 row = 0;
    if constexpr (Real::kMaxRows >= 4)
      for (; row + 4 <= args.rows; row += 4) sum_group<4, ternary>(args, group, row);
    for (; row + 2 <= args.rows; row += 2) sum_group<2, ternary>(args, group, row);
    for (; row < args.rows; ++row) sum_group<1, ternary>(args, group, row);
  }
}

// Of groups: key words pass once for `count` rows, each of which makes its own bundle of them.
template <u32 count>
inline void bundle_group(const TorusSumArgs& args, u64 group, u32 row) {
  const u32 keys = args.bundle;
  Point root[count * 4 << 6];  // at most 2^6 keys
  for (u32 r = 0; r < count; ++r)
    for (u32 set = 1; set < keys; ++set)
      roots(root + (r * keys + set) * 4, args, group, args.exponent[(row + r) * keys + set]);
  for (u32 t = 0; t < 4; ++t) {
    const u64 vector = 4 * group + t, at = vector * args.terms * kPair;
    const double* key = args.key + at * args.outs * keys;
    for (u32 o = 0; o < args.outs; ++o) {
      Point z[count];
      for (u32 r = 0; r < count; ++r) z[r] = {Real::set1(0.0), Real::set1(0.0)};
      for (u32 i = 0; i < args.terms; ++i, key += keys * kPair) {
        if (row == 0)  // the later rows find the key in L1
          for (u32 line = 0; line < keys * kPair * sizeof(double); line += 64)
            __builtin_prefetch(reinterpret_cast<const char*>(key) + kTorusLead + line, 0, 3);
        Point bundle[count];
        for (u32 r = 0; r < count; ++r) bundle[r] = load_point(key);
        for (u32 set = 1; set < keys; ++set) {
          const Point k = load_point(key + set * kPair);
          for (u32 r = 0; r < count; ++r)
            multiply_add(bundle[r], root[(r * keys + set) * 4 + t], k);
        }
        for (u32 r = 0; r < count; ++r)
          multiply_add(z[r], load_point(args.spectra[row + r] + at + i * kPair), bundle[r]);
      }
      for (u32 r = 0; r < count; ++r) store_point(args.buffer + (r * args.outs + o) * kPair, z[r]);
    }
    for (u32 r = 0; r < count; ++r)
      for (u32 o = 0; o < args.outs; ++o)
        store_point(args.spectra[row + r] + (vector * args.outs + o) * kPair,
                    load_point(args.buffer + (r * args.outs + o) * kPair));
  }
}

inline void bundle_rows(const TorusSumArgs& args) {
  for (u64 group = 0; group < args.vectors / 4; ++group) {
    u32 row = 0;
    for (; row + 2 <= args.rows; row += 2) bundle_group<2>(args, group, row);
    for (; row < args.rows; ++row) bundle_group<1>(args, group, row);
  }
}

// Of groups by differences, several elements: sums of all keys, turned when they are complete.
inline void difference_row(const TorusSumArgs& args, u64 group, u32 row) {
  const u32 keys = args.bundle - 1;
  Point root[4 << 6], a[1 << 6];  // at most 2^6 sets
  for (u32 k = 0; k < keys; ++k)
    monomials(root + 4 * k, args, group, args.exponent[row * args.bundle + k + 1]);
  for (u32 t = 0; t < 4; ++t) {
    const u64 vector = 4 * group + t, at = vector * args.terms * kPair;
    const double* key = args.key + at * args.outs * keys;
    for (u32 o = 0; o < args.outs; ++o) {
      for (u32 k = 0; k < keys; ++k) a[k] = {Real::set1(0.0), Real::set1(0.0)};
      for (u32 i = 0; i < args.terms; ++i, key += keys * kPair) {
        const Point x = load_point(args.spectra[row] + at + i * kPair);
        for (u32 k = 0; k < keys; ++k) multiply_add(a[k], x, load_point(key + k * kPair));
      }
      Point z{Real::fms(root[t].re, a[0].re, Real::mul(root[t].im, a[0].im)),
              Real::fma(root[t].re, a[0].im, Real::mul(root[t].im, a[0].re))};
      for (u32 k = 1; k < keys; ++k) multiply_add(z, root[4 * k + t], a[k]);
      store_point(args.buffer + o * kPair, z);
    }
    for (u32 o = 0; o < args.outs; ++o)
      store_point(args.spectra[row] + (vector * args.outs + o) * kPair,
                  load_point(args.buffer + o * kPair));
  }
}

inline void difference_rows(const TorusSumArgs& args) {
  for (u64 group = 0; group < args.vectors / 4; ++group)
    for (u32 row = 0; row < args.rows; ++row) difference_row(args, group, row);
}

inline void torus_sum(const TorusSumArgs& args) {
  if (args.differences && args.bundle > 2)
    difference_rows(args);
  else if (args.bundle != 0 && !args.differences)
    bundle_rows(args);
  else if (args.ternary)
    sum_rows<true>(args);
  else
    sum_rows<false>(args);
}

// Eight rows at a time: they lie anywhere in a key far larger than the caches, and as many streams
// as possible should be under way.
template <class W>
inline void subtract_rows(W* sum, const W* const* rows, u32 count, u32 words) {
  u32 k = 0;
  for (; k + 8 <= count; k += 8) {
    const W *a = rows[k], *b = rows[k + 1], *c = rows[k + 2], *d = rows[k + 3];
    const W *e = rows[k + 4], *f = rows[k + 5], *g = rows[k + 6], *h = rows[k + 7];
    for (u32 i = 0; i < words; ++i)
      sum[i] -= ((a[i] + b[i]) + (c[i] + d[i])) + ((e[i] + f[i]) + (g[i] + h[i]));
  }
  for (; k < count; ++k)
    for (u32 i = 0; i < words; ++i) sum[i] -= rows[k][i];
}

inline void subtract_products(u32* sum, const u32* rows, const u32* factors, u32 count, u32 words) {
  u32 k = 0;
  for (; k + 4 <= count; k += 4) {
    const u32 *a = rows + u64(k) * words, *b = a + words, *c = b + words, *d = c + words;
    const u32 p = factors[k], q = factors[k + 1], r = factors[k + 2], s = factors[k + 3];
    for (u32 i = 0; i < words; ++i) sum[i] -= (a[i] * p + b[i] * q) + (c[i] * r + d[i] * s);
  }
  for (; k < count; ++k)
    for (u32 i = 0; i < words; ++i) sum[i] -= rows[u64(k) * words + i] * factors[k];
}

template <class W>
inline W dot(const W* a, const i8* s, u32 count) {
  W sum = 0;
  for (u32 i = 0; i < count; ++i) sum += a[i] * static_cast<W>(static_cast<i64>(s[i]));
  return sum;
}

inline constexpr TorusTable kTorus = {kLanes,
                                      decompose_poly,
                                      forward_transform,
                                      inverse_transform,
                                      torus_sum,
                                      accumulate_poly,
                                      monomial_rows,
                                      digit_rows,
                                      combine_rows,
                                      subtract_rows<u32>,
                                      subtract_rows<u64>,
                                      subtract_products,
                                      dot<u32>,
                                      dot<u64>};

}  // namespace CRENEL_CPU_TORUS_ISA
}  // namespace crenel::backend::cpu
