// The double-precision transform. Included by impl.h. The operations and their order are
// those of device/torus/kernels.h: every path and every backend gives the same bits.
#pragma once

namespace crenel::backend::cpu {
inline namespace CRENEL_CPU_TORUS_ISA {

using D = Real::D;
using I = Real::I;
inline constexpr u32 kLanes = Real::kLanes;
inline constexpr u32 kPair = 2 * kLanes;  // doubles of a vector of points

struct Point {
  D re, im;
};

inline Point load_point(const double* p) { return {Real::load(p), Real::load(p + kLanes)}; }
inline void store_point(double* p, const Point& x) {
  Real::store(p, x.re);
  Real::store(p + kLanes, x.im);
}
inline Point broadcast(const double* w) { return {Real::set1(w[0]), Real::set1(w[1])}; }

// `turned`: the twiddle is i w.
template <bool turned>
inline void forward_butterfly(Point& lo, Point& hi, const Point& w, D two) {
  Point x;
  if constexpr (turned) {
    x.re = Real::fnma(w.re, hi.im, Real::fnma(w.im, hi.re, lo.re));
    x.im = Real::fma(w.re, hi.re, Real::fnma(w.im, hi.im, lo.im));
  } else {
    x.re = Real::fnma(w.im, hi.im, Real::fma(w.re, hi.re, lo.re));
    x.im = Real::fma(w.im, hi.re, Real::fma(w.re, hi.im, lo.im));
  }
  hi = {Real::fms(two, lo.re, x.re), Real::fms(two, lo.im, x.im)};
  lo = x;
}

template <bool turned>
inline void inverse_butterfly(Point& lo, Point& hi, const Point& w) {
  const Point d{Real::sub(lo.re, hi.re), Real::sub(lo.im, hi.im)};
  lo = {Real::add(lo.re, hi.re), Real::add(lo.im, hi.im)};
  if constexpr (turned) {
    // w.re -> -w.im, w.im -> w.re; changes of sign are exact
    hi.re = Real::fms(w.re, d.im, Real::mul(w.im, d.re));
    hi.im = Real::fnms(w.re, d.re, Real::mul(w.im, d.im));
  } else {
    hi.re = Real::fma(w.im, d.im, Real::mul(w.re, d.re));
    hi.im = Real::fnma(w.im, d.re, Real::mul(w.re, d.im));
  }
}

// Levels of a radix-2^stages node on x[0 .. 2^stages): w[2^s / 2 + b] serves the nodes 2b, 2b + 1
// of level s (w[0] the root).
template <int stages>
inline void forward_levels(Point* x, const Point* w) {
  constexpr int points = 1 << stages;
  const D two = Real::set1(2.0);
#pragma GCC unroll 8
  for (int s = 0; s < stages; ++s)
#pragma GCC unroll 8
    for (int k = 0; k < points / 2; ++k) {
      const int half = points >> (s + 1), block = k / half, i = 2 * half * block + k % half;
      const Point& t = w[s == 0 ? 0 : (1 << s) / 2 + block / 2];
      if (block % 2)
        forward_butterfly<true>(x[i], x[i + half], t, two);
      else
        forward_butterfly<false>(x[i], x[i + half], t, two);
    }
}

template <int stages>
inline void inverse_levels(Point* x, const Point* w) {
  constexpr int points = 1 << stages;
#pragma GCC unroll 8
  for (int s = stages - 1; s >= 0; --s)
#pragma GCC unroll 8
    for (int k = 0; k < points / 2; ++k) {
      const int half = points >> (s + 1), block = k / half, i = 2 * half * block + k % half;
      const Point& t = w[s == 0 ? 0 : (1 << s) / 2 + block / 2];
      if (block % 2)
        inverse_butterfly<true>(x[i], x[i + half], t);
      else
        inverse_butterfly<false>(x[i], x[i + half], t);
    }
}

// Twiddles of the levels below node b of level d.
template <int stages>
inline void load_twiddles(Point* w, const TorusFft& fft, u32 d, u32 b) {
#pragma GCC unroll 8
  for (int s = 0; s < stages; ++s)
#pragma GCC unroll 8
    for (int k = 0; k < (1 << s); k += 2)
      w[s == 0 ? 0 : (1 << s) / 2 + k / 2] =
          broadcast(fft.twiddles + 2 * ((u64(1) << (d + u32(s))) + (u64(b) << s) + u64(k)));
}

// The levels d .. d + stages - 1 of the whole tree.
template <int stages, bool forward>
inline void vertical_pass(double* z, const TorusFft& fft, u32 d) {
  constexpr int points = 1 << stages;
  const u64 len = (u64(1) << (fft.log_points - d)) / kLanes, step = len >> stages;  // in vectors
  for (u32 b = 0; b < u32(1) << d; ++b) {
    Point w[points];
    load_twiddles<stages>(w, fft, d, b);
    double* node = z + b * len * kPair;
    for (u64 j = 0; j < step; ++j) {
      Point x[points];
#pragma GCC unroll 8
      for (int k = 0; k < points; ++k) x[k] = load_point(node + (j + u64(k) * step) * kPair);
      if constexpr (forward)
        forward_levels<stages>(x, w);
      else
        inverse_levels<stages>(x, w);
#pragma GCC unroll 8
      for (int k = 0; k < points; ++k) store_point(node + (j + u64(k) * step) * kPair, x[k]);
    }
  }
}

inline void transpose(Point* x) {
  D part[kLanes];
#pragma GCC unroll 8
  for (u32 k = 0; k < kLanes; ++k) part[k] = x[k].re;
  Real::transpose(part);
#pragma GCC unroll 8
  for (u32 k = 0; k < kLanes; ++k) x[k].re = part[k], part[k] = x[k].im;
  Real::transpose(part);
#pragma GCC unroll 8
  for (u32 k = 0; k < kLanes; ++k) x[k].im = part[k];
}

// The last 2 L levels, block by block in registers: L across vectors, a transposition, L more; with
// the change between the polynomial's contiguous vectors z and those of the spectrum.
template <bool forward>
inline void leaf_pass(double* z, double* spectrum, u64 stride, const TorusFft& fft,
                      const char* ahead) {
  constexpr int stages = static_cast<int>(Real::kLogLanes);
  constexpr u32 entries = kLanes > 1 ? kLanes / 2 : 1;
  const u32 d = fft.log_points - 2 * Real::kLogLanes;
  for (u32 block = 0; block < u32(1) << d; ++block) {
    if (ahead != nullptr)
      for (u32 line = 0; line < kTorusPrefetch; line += 64)
        __builtin_prefetch(ahead + block * kTorusPrefetch + line, 0, 2);
    double* p = z + u64(block) * kLanes * kPair;
    double* q = spectrum + u64(block) * kLanes * stride;
    Point x[kLanes], w[entries], v[entries];
    if constexpr (stages > 0) {
      const double* lane_w = fft.lane_twiddles + u64(block) * entries * kPair;
      load_twiddles<stages>(w, fft, d, block);
#pragma GCC unroll 8
      for (u32 k = 0; k < entries; ++k) v[k] = load_point(lane_w + k * kPair);
    }
    if constexpr (forward) {
#pragma GCC unroll 8
      for (u32 k = 0; k < kLanes; ++k) x[k] = load_point(p + k * kPair);
      if constexpr (stages > 0) {
        forward_levels<stages>(x, w);
        transpose(x);
        forward_levels<stages>(x, v);
      }
#pragma GCC unroll 8
      for (u32 k = 0; k < kLanes; ++k) store_point(q + k * stride, x[k]);
    } else {
#pragma GCC unroll 8
      for (u32 k = 0; k < kLanes; ++k) x[k] = load_point(q + k * stride);
      if constexpr (stages > 0) {
        inverse_levels<stages>(x, v);
        transpose(x);
        inverse_levels<stages>(x, w);
      }
#pragma GCC unroll 8
      for (u32 k = 0; k < kLanes; ++k) store_point(p + k * kPair, x[k]);
    }
  }
}

template <bool forward>
inline void vertical_levels(double* z, const TorusFft& fft, u32 d, u32 stages) {
  if constexpr (Real::kMaxStages >= 3)
    if (stages == 3) return vertical_pass<3, forward>(z, fft, d);
  if (stages == 2) return vertical_pass<2, forward>(z, fft, d);
  vertical_pass<1, forward>(z, fft, d);
}

// Levels of the next pass when `rest` are left: no pass of one level where that can be helped.
inline u32 pass_levels(u32 rest) {
  constexpr u32 most = Real::kMaxStages;
  if (rest <= most) return rest;
  return rest % most == 1 && most > 2 ? most - 1 : most;
}

inline void forward_transform(double* spectrum, u64 stride, double* z, const TorusFft& fft,
                              const char* ahead) {
  const u32 levels = fft.log_points - 2 * Real::kLogLanes;
  for (u32 d = 0; d < levels;) {
    const u32 now = pass_levels(levels - d);
    vertical_levels<true>(z, fft, d, now);
    d += now;
  }
  leaf_pass<true>(z, spectrum, stride, fft, ahead);
}

inline void inverse_transform(double* z, const double* spectrum, u64 stride, const TorusFft& fft,
                              const char* ahead) {
  leaf_pass<false>(z, const_cast<double*>(spectrum), stride, fft, ahead);
  for (u32 d = fft.log_points - 2 * Real::kLogLanes; d > 0;) {
    const u32 now = pass_levels(d);
    d -= now;
    vertical_levels<false>(z, fft, d, now);
  }
}

}  // namespace CRENEL_CPU_TORUS_ISA
}  // namespace crenel::backend::cpu
