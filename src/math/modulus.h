// A prime with the constants that the reductions need; Barrett reduction.
#pragma once

#include "math/shoup.h"
#include "math/word.h"

namespace crenel::math {

/// One odd prime q < 2^(bits-1) with its reduction constants. Plain data: travels to the device as
/// is.
template <class W>
struct Modulus {
  W q = 0;
  W q_inv = 0;       ///< q^-1 mod R, R = 2^bits
  W r = 0;           ///< R mod q
  W r2 = 0;          ///< R^2 mod q (takes canonical to Montgomery form)
  W barrett_lo = 0;  ///< floor(R^2 / q), low word
  W barrett_hi = 0;  ///< floor(R^2 / q), high word

  Modulus() = default;
  explicit Modulus(W prime) : q(prime), q_inv(inverse_mod_word<W>(prime)) {
    const Wide<W> radix = Wide<W>(1) << WordTraits<W>::bits;
    r = static_cast<W>(radix % q);
    r2 = static_cast<W>(static_cast<Wide<W>>(r) * r % q);
    const Wide<W> all = ~Wide<W>(0);  // R^2 - 1; q does not divide R^2, so the floors agree
    const Wide<W> ratio = all / q;
    barrett_lo = static_cast<W>(ratio);
    barrett_hi = static_cast<W>(ratio >> WordTraits<W>::bits);
  }
};

/// Barrett reduction of ANY double word: x in [0, R^2) to [0, q).
/// The quotient estimate floor(x * floor(R^2/q) / R^2) is computed exactly (nested floors) and is
/// at most 1 below the true quotient because x < R^2: one conditional subtraction suffices.
template <class W>
CRENEL_HD W barrett_reduce(Wide<W> x, const Modulus<W>& m) {
  const W x0 = static_cast<W>(x);
  const W x1 = static_cast<W>(x >> WordTraits<W>::bits);
  // floor(x * ratio / R^2) modulo R, with ratio = barrett_hi R + barrett_lo
  const Wide<W> mid = static_cast<Wide<W>>(x0) * m.barrett_hi + mul_hi<W>(x0, m.barrett_lo);
  const Wide<W> mid2 = static_cast<Wide<W>>(x1) * m.barrett_lo + static_cast<W>(mid);
  const W quotient = static_cast<W>(x1 * m.barrett_hi + static_cast<W>(mid >> WordTraits<W>::bits) +
                                    static_cast<W>(mid2 >> WordTraits<W>::bits));
  const W rest = static_cast<W>(x0 - quotient * m.q);
  return reduce_once<W>(rest, m.q);
}

/// a * b mod q for words a, b with a * b < R^2 (any words), in [0, q).
template <class W>
CRENEL_HD W mul_mod(W a, W b, const Modulus<W>& m) {
  return barrett_reduce<W>(static_cast<Wide<W>>(a) * b, m);
}

/// a^e mod q.
template <class W>
CRENEL_HD W pow_mod(W a, u64 e, const Modulus<W>& m) {
  W result = 1 % m.q;
  W base = static_cast<W>(a % m.q);
  for (; e != 0; e >>= 1) {
    if (e & 1) result = mul_mod<W>(result, base, m);
    base = mul_mod<W>(base, base, m);
  }
  return result;
}

/// a^-1 mod q, a not divisible by the prime q.
template <class W>
CRENEL_HD W inverse_mod(W a, const Modulus<W>& m) {
  return pow_mod<W>(a, static_cast<u64>(m.q) - 2, m);
}

/// x mod q in [0, q) for a signed integer x.
template <class W>
CRENEL_HD W from_signed(i64 x, const Modulus<W>& m) {
  const u64 magnitude = x < 0 ? u64(0) - static_cast<u64>(x) : static_cast<u64>(x);
  const W y = static_cast<W>(magnitude % m.q);
  return x < 0 ? neg_mod<W>(y, m.q) : y;
}

}  // namespace crenel::math
