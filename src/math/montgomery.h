// Montgomery reduction, R = 2^bits: the signed form of Cheddar Alg. 2 and the unsigned form.
#pragma once

#include "math/word.h"

namespace crenel::math {

/// Signed Montgomery reduction [Cheddar, Alg. 2]: x in [-q 2^(bits-1), q 2^(bits-1)), q odd,
/// q < 2^(bits-1), q_inv = q^-1 mod 2^bits. Returns x R^-1 mod q in (-q, q).
template <class W>
CRENEL_HD Signed<W> montgomery_reduce_signed(typename WordTraits<W>::SignedWide x, W q, W q_inv) {
  using SW = typename WordTraits<W>::SignedWide;
  const auto low = static_cast<W>(x);
  const auto z = static_cast<Signed<W>>(mul_lo<W>(low, q_inv));
  const auto zq_hi = static_cast<Signed<W>>((static_cast<SW>(z) * static_cast<Signed<W>>(q)) >>
                                            WordTraits<W>::bits);
  return static_cast<Signed<W>>(static_cast<Signed<W>>(x >> WordTraits<W>::bits) - zq_hi);
}

/// (-q, q) to [0, q).
template <class W>
CRENEL_HD W canonical_from_signed(Signed<W> y, W q) {
  return static_cast<W>(y < 0 ? y + static_cast<Signed<W>>(q) : y);
}

/// Unsigned Montgomery reduction: x in [0, q R), q odd, q < 2^(bits-1). Returns x R^-1 mod q in
/// [0, q).
template <class W>
CRENEL_HD W montgomery_reduce(Wide<W> x, W q, W q_inv) {
  const W z = mul_lo<W>(static_cast<W>(x), q_inv);
  const W hi = static_cast<W>(x >> WordTraits<W>::bits);
  const W zq = mul_hi<W>(z, q);
  const W d = hi - zq;
  return hi < zq ? static_cast<W>(d + q) : d;
}

}  // namespace crenel::math
