// Word-level building blocks shared by host and device code.
//
// The library's residues are u32; every template here is also instantiated with u64 for comparison.
#pragma once

#include "crenel/core/types.h"

#if defined(__CUDACC__)
#define CRENEL_HD __host__ __device__ __forceinline__
#else
#define CRENEL_HD inline
#endif

namespace crenel::math {

/// Types that go with a residue word: the double-width product.
template <class W>
struct WordTraits;

template <>
struct WordTraits<u32> {
  using Wide = u64;
  static constexpr unsigned bits = 32;
};

template <>
struct WordTraits<u64> {
  using Wide = u128;
  static constexpr unsigned bits = 64;
};

template <class W>
using Wide = typename WordTraits<W>::Wide;

/// floor(a * b / 2^bits).
template <class W>
CRENEL_HD W mul_hi(W a, W b) {
#if defined(__CUDA_ARCH__)
  if constexpr (sizeof(W) == 4)
    return __umulhi(a, b);
  else
    return __umul64hi(a, b);
#else
  return static_cast<W>((static_cast<Wide<W> >(a) * b) >> WordTraits<W>::bits);
#endif
}

/// a * b mod 2^bits, without the undefined behaviour of signed overflow.
template <class W>
CRENEL_HD W mul_lo(W a, W b) {
  return static_cast<W>(a * b);
}

/// x - q when x >= q, else x: takes [0, 2q) to [0, q). Branch-free (a minimum of wrapped words).
template <class W>
CRENEL_HD W reduce_once(W x, W q) {
  const W y = x - q;
  return y < x ? y : x;
}

/// (a + b) mod q for a, b in [0, q), q < 2^(bits-1).
template <class W>
CRENEL_HD W add_mod(W a, W b, W q) {
  return reduce_once<W>(a + b, q);
}

/// (a - b) mod q for a, b in [0, q), q < 2^(bits-1).
template <class W>
CRENEL_HD W sub_mod(W a, W b, W q) {
  const W d = a - b;
  const W e = d + q;
  return e < d ? e : d;  // when a < b, d wrapped around and d + q wraps back below it
}

/// -a mod q for a in [0, q).
template <class W>
CRENEL_HD W neg_mod(W a, W q) {
  return a == 0 ? W(0) : static_cast<W>(q - a);
}

/// Inverse of the odd number q modulo 2^bits (Newton iteration: the count of right bits doubles).
template <class W>
constexpr W inverse_mod_word(W q) {
  W x = q;  // right to 3 bits for every odd q
  for (int i = 0; i < 5; ++i) x = static_cast<W>(x * (W(2) - q * x));
  return x;
}

}  // namespace crenel::math
