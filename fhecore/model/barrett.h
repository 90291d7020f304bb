// The modular arithmetic of a processing element: Barrett reduction with fixed shifts and the
// modulo-accumulate step. One definition for the host, for CUDA and for tests of the RTL.
#pragma once

#include "math/word.h"

namespace crenel::fhecore {

template <unsigned Bits>
CRENEL_HD constexpr u64 low_mask() {
  static_assert(Bits < 64);
  return (u64(1) << Bits) - 1;
}

/// p mod q or that plus q: in [0, 2q), for any p < 2^(2W), 2^(W-4) < q < 2^W and
/// mu = floor(2^(2W+1) / q), which has W+5 bits.
///
/// The quotient estimate ((p >> (W-5)) mu) >> (W+6) falls short of p/q by less than
/// 2^(W-5)/q + p/2^(2W+1) + 1 < 1/2 + 1/2 + 1, so its floor is at most 1 short. The shifts do not
/// depend on q: no shifters in hardware ([Barrett86], with one more bit of mu). With
/// another mu the result is whatever W+2 bits hold, as in the RTL.
template <unsigned W>
CRENEL_HD u64 barrett_lazy(u64 p, u32 q, u64 mu) {
  static_assert(W >= 6 && W <= 32);
  // x has W+5 bits: moved up, the high word of the 128-bit product is the product >> (W+6).
  const u64 x = p >> (W - 5);
  const u64 quotient = math::mul_hi<u64>(x << (64 - (W + 6)), mu);
  return (p - quotient * q) & low_mask<W + 2>();
}

/// One step of a processing element: (acc + a b + c) mod q in [0, q), for acc in [0, q) and ANY
/// W-bit words a, b, c (a b + c < 2^(2W)); q and mu as above. c takes part in the first step only.
template <unsigned W>
CRENEL_HD u32 pe_step(u32 acc, u32 a, u32 b, u32 c, u32 q, u64 mu) {
  const u64 sum = acc + barrett_lazy<W>(static_cast<u64>(a) * b + c, q, mu);
  const u64 once = sum - q, twice = once - q;
  // Three sums at once, picked by sign; the top bit says "negative".
  const u64 low = (once >> 63) != 0 ? sum : once;
  return static_cast<u32>(((twice >> 63) != 0 ? low : twice) & low_mask<W>());
}

}  // namespace crenel::fhecore
