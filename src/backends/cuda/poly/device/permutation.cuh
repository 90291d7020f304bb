// Automorphisms in evaluation form, on aligned blocks of values.
#pragma once

#include "crenel/core/types.h"

namespace crenel::backend::cuda {

/// Values [at, at + Values) of an automorphism's result, from the aligned block of its argument
/// that has them: `source` is where value `at` comes from. In bit-reversed order, value at + 1 is
/// the other one of the pair, and the other pair of a block of four is turned by what the lowest
/// bits of the element carry into it.
template <u32 Values>
__device__ __forceinline__ void permute(u32 (&x)[Values], u32 source, u32 element) {
  const auto turn = [](u32& p, u32& q, bool wanted) {
    const u32 s = p, t = q;
    p = wanted ? t : s;
    q = wanted ? s : t;
  };
  const bool first = source & 1;
  if constexpr (Values == 4) {
    const bool pairs = source & 2;
    const bool second = first ^ pairs ^ ((element & 2) != 0);
    turn(x[0], x[2], pairs);
    turn(x[1], x[3], pairs);
    turn(x[2], x[3], second);
  }
  turn(x[0], x[1], first);
}

/// The same of a vector of four.
__device__ __forceinline__ uint4 permuted(uint4 v, u32 source, u32 element) {
  u32 x[4] = {v.x, v.y, v.z, v.w};
  permute<4>(x, source, element);
  return make_uint4(x[0], x[1], x[2], x[3]);
}

}  // namespace crenel::backend::cuda
