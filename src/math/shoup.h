// Shoup multiplication: one operand is a constant whose scaled quotient is precomputed.
#pragma once

#include "math/word.h"

namespace crenel::math {

/// A constant in [0, q) with floor(value * 2^bits / q).
template <class W>
struct ShoupConstant {
  W value = 0;
  W quotient = 0;
};

template <class W>
CRENEL_HD ShoupConstant<W> make_shoup(W value, W q) {
  return {value, static_cast<W>((static_cast<Wide<W>>(value) << WordTraits<W>::bits) / q)};
}

/// x * c mod q in [0, 2q), for ANY word x and q < 2^(bits-1).
template <class W>
CRENEL_HD W mul_shoup_lazy(W x, W value, W quotient, W q) {
  return static_cast<W>(x * value - mul_hi<W>(x, quotient) * q);
}

/// x * c mod q in [0, q), for ANY word x and q < 2^(bits-1).
template <class W>
CRENEL_HD W mul_shoup(W x, const ShoupConstant<W>& c, W q) {
  return reduce_once<W>(mul_shoup_lazy<W>(x, c.value, c.quotient, q), q);
}

}  // namespace crenel::math
