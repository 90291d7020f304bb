// Integer steps around the number-theoretic transforms. Included by isa_<isa>.cpp after a
// vec_*.h: plain loops that the compiler turns into vectors of that instruction set.
#pragma once

namespace crenel::backend::cpu {
inline namespace CRENEL_CPU_TORUS_ISA {

inline void monomial_rows(u32* plus, u32* minus, const u32* powers, const u32* exponents, u32 e,
                          u32 n) {
  const u32 mask = 2 * n - 1;
  for (u32 f = 0; f < n; ++f) {
    const u32 at = e * exponents[f];
    plus[f] = powers[at & mask];
    minus[f] = powers[(0u - at) & mask];
  }
}

// The integer congruent to x modulo 2 half in [-half, half), half a power of two.
inline i64 centred_residue(i64 x, i64 half) { return ((x & (2 * half - 1)) ^ half) - half; }

inline void digit_rows(i64* out, u64 count, const i64* acc, const TorusRounding& r) {
  if (r.raising) {
    const i64 half = static_cast<i64>(r.modulus / 2);
    for (u64 c = 0; c < count; ++c) out[c] = centred_residue(acc[c], half);
    return;
  }
  const i64 half = (i64(1) << r.base_log) / 2;
  i64* rest = out + (r.digits - 1) * count;  // the last digit is what is left
  for (u64 c = 0; c < count; ++c) rest[c] = (acc[c] - centred_residue(acc[c], half)) >> r.base_log;
  for (u32 d = 0; d + 1 < r.digits; ++d) {
    i64* digit = out + d * count;
    for (u64 c = 0; c < count; ++c) {
      digit[c] = centred_residue(rest[c], half);
      rest[c] = (rest[c] - digit[c]) >> r.base_log;
    }
  }
}

// x c mod p in [0, p) for any word x.
inline u32 times_constant(u32 x, u32 c, u32 c_quotient, u32 p) {
  const u32 r = x * c - static_cast<u32>(u64(x) * c_quotient >> 32) * p;
  return r < p ? r : r - p;
}

// The number modulo p0 p1 that is x modulo p0 and y modulo p1; x itself with one prime.
template <bool two>
inline u64 joined(const u32* x, const u32* y, u32 c, const TorusCrt& m) {
  if constexpr (!two) return x[c];
  const u32 a = times_constant(y[c], m.inverse, m.inverse_quotient, m.p1);
  const u32 b = times_constant(x[c], m.inverse, m.inverse_quotient, m.p1);
  const u32 t = a >= b ? a - b : a - b + m.p1;
  return x[c] + u64(m.p0) * t;
}

// round(Q x / T): estimates by doubles, whose remainders (modulo 2^64, but small) are exact; after
// two of them the quotient is off by one at most.
inline u64 scaled(u64 x, const TorusCrt& m) {
  const i64 t = static_cast<i64>(m.key_modulus), half = t / 2;
  i64 quotient = static_cast<i64>(static_cast<double>(static_cast<i64>(x)) * m.ratio);
  const auto rest = [&] {
    return static_cast<i64>(x * m.modulus - static_cast<u64>(quotient) * m.key_modulus);
  };
  quotient += static_cast<i64>(static_cast<double>(rest()) * m.key_modulus_inverse);
  const i64 left = rest();
  return static_cast<u64>(quotient + (left > half) - (left < -half));
}

template <bool two>
inline void combine_raising(i64* acc, const u32* x, const u32* y, u32 n, const TorusCrt& m) {
  for (u32 c = 0; c < n; ++c)  // representatives may wrap: Q divides 2^64
    acc[c] = static_cast<i64>(static_cast<u64>(acc[c]) + scaled(joined<two>(x, y, c, m), m));
}

template <bool two>
inline void combine_gadget(i64* acc, const u32* x, const u32* y, u32 n, const TorusCrt& m) {
  const i64 q = static_cast<i64>(m.modulus), top = q / 2;
  for (u32 c = 0; c < n; ++c) {
    const i64 sum = acc[c] + static_cast<i64>(joined<two>(x, y, c, m));
    acc[c] = sum - (sum > top ? q : 0);
  }
}

inline void combine_rows(i64* acc, const u32* x, const u32* y, u32 n, const TorusCrt& m) {
  if (m.raising && m.p1 != 0)
    combine_raising<true>(acc, x, y, n, m);
  else if (m.raising)
    combine_raising<false>(acc, x, y, n, m);
  else if (m.p1 != 0)
    combine_gadget<true>(acc, x, y, n, m);
  else
    combine_gadget<false>(acc, x, y, n, m);
}

}  // namespace CRENEL_CPU_TORUS_ISA
}  // namespace crenel::backend::cpu
