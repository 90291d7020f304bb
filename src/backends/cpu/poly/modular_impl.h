// Modular arithmetic on vectors. Included after a vec_*.h; ranges are per lane.
#pragma once

namespace crenel::backend::cpu {
inline namespace CRENEL_CPU_ISA {

using V = Vec::V;

// [0, 2c) to [0, c), c < 2^31.
inline V fold(V x, V c) { return Vec::min(x, Vec::sub(x, c)); }
// (-c, c) modulo 2^32 to [0, c), c < 2^31.
inline V unwrap(V x, V c) { return Vec::min(x, Vec::add(x, c)); }

// a + b and a - b mod q for a, b in [0, q).
inline V add_mod(V a, V b, V q) { return fold(Vec::add(a, b), q); }
inline V sub_mod(V a, V b, V q) { return unwrap(Vec::sub(a, b), q); }

struct VShoup {
  V value, quotient;
};
inline VShoup broadcast(Shoup s) { return {Vec::set1(s.value), Vec::set1(s.quotient)}; }

// x * s mod q in [0, 2q) for any word x; the constant differs from lane to lane.
inline V mul_shoup_lazy(V x, const VShoup& s, V q) {
  return Vec::sub(Vec::mul_lo(x, s.value), Vec::mul_lo(Vec::mul_hi(x, s.quotient), q));
}
// The same for a constant that is equal in lanes 2i and 2i + 1.
inline V mul_shoup_lazy_dup(V x, const VShoup& s, V q) {
  return Vec::sub(Vec::mul_lo(x, s.value), Vec::mul_lo(Vec::mul_hi_dup(x, s.quotient), q));
}
// x * s mod q in [0, q) for any word x and a broadcast constant.
inline V mul_shoup(V x, const VShoup& s, V q) { return fold(mul_shoup_lazy_dup(x, s, q), q); }

// Reduction of a sum of products to [0, q).
struct Reducer {
  V q, q_inv;
  VShoup r;
  decltype(Vec::set1_high(0)) q_high;
  explicit Reducer(const Prime& p)
      : q(Vec::set1(p.q)),
        q_inv(Vec::set1(p.q_inv)),
        r(broadcast(p.r)),
        q_high(Vec::set1_high(p.q)) {}
  // x < q * 2^32 to x * 2^-32 mod q in [0, q)
  V montgomery(Vec::Wide x) const {
    return sub_mod(Vec::wide_high(x), Vec::wide_quotient(x, q, q_inv), q);
  }
  // x < q * 2^32 to x mod q in [0, q)
  V reduce(Vec::Wide x) const { return mul_shoup(montgomery(x), r, q); }
  // x < 2 q * 2^32 to [0, q * 2^32)
  Vec::Wide fold_wide(Vec::Wide x) const { return Vec::wide_fold(x, q_high); }
  // a * b mod q for a, b in [0, q)
  V mul(V a, V b) const { return reduce(Vec::wide_mul(a, b)); }
};

}  // namespace CRENEL_CPU_ISA
}  // namespace crenel::backend::cpu
