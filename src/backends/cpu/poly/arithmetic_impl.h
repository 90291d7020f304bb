// Element-wise kernels on rows. Included by arithmetic_<isa>.cpp after a vec_*.h.
#pragma once

#include "backends/cpu/poly/modular_impl.h"

namespace crenel::backend::cpu {
inline namespace CRENEL_CPU_ISA {

template <class F>
inline void map1(u32* out, const u32* a, u64 n, F f) {
  for (u64 i = 0; i < n; i += Vec::kLanes) Vec::store(out + i, f(Vec::load(a + i)));
}

template <class F>
inline void map2(u32* out, const u32* a, const u32* b, u64 n, F f) {
  for (u64 i = 0; i < n; i += Vec::kLanes)
    Vec::store(out + i, f(Vec::load(a + i), Vec::load(b + i)));
}

inline void add_row(u32* out, const u32* a, const u32* b, u64 n, u32 q) {
  const V vq = Vec::set1(q);
  map2(out, a, b, n, [=](V x, V y) { return add_mod(x, y, vq); });
}

inline void sub_row(u32* out, const u32* a, const u32* b, u64 n, u32 q) {
  const V vq = Vec::set1(q);
  map2(out, a, b, n, [=](V x, V y) { return sub_mod(x, y, vq); });
}

inline void neg_row(u32* out, const u32* a, u64 n, u32 q) {
  const V vq = Vec::set1(q), zero = Vec::zero();
  map1(out, a, n, [=](V x) { return sub_mod(zero, x, vq); });
}

inline void mul_row(u32* out, const u32* a, const u32* b, u64 n, const Prime& p) {
  const Reducer m(p);
  map2(out, a, b, n, [&](V x, V y) { return m.mul(x, y); });
}

inline void mul_add_row(u32* out, const u32* a, const u32* b, u64 n, const Prime& p) {
  const Reducer m(p);
  for (u64 i = 0; i < n; i += Vec::kLanes) {
    const V product = m.mul(Vec::load(a + i), Vec::load(b + i));
    Vec::store(out + i, add_mod(Vec::load(out + i), product, m.q));
  }
}

inline void mul_scalar_row(u32* out, const u32* a, u64 n, Shoup s, u32 q) {
  const V vq = Vec::set1(q);
  const VShoup c = broadcast(s);
  map1(out, a, n, [&](V x) { return mul_shoup(x, c, vq); });
}

inline void mul_add_scalar_row(u32* out, const u32* a, u64 n, Shoup s, u32 q) {
  const V vq = Vec::set1(q);
  const VShoup c = broadcast(s);
  map2(out, out, a, n, [&](V o, V x) { return add_mod(o, mul_shoup(x, c, vq), vq); });
}

inline void add_scalar_row(u32* out, const u32* a, u64 n, u32 s, u32 q) {
  const V vq = Vec::set1(q), c = Vec::set1(s);
  map1(out, a, n, [=](V x) { return add_mod(x, c, vq); });
}

inline void scale_shift_row(u32* out, const u32* a, u64 n, Shoup s, u32 shift, u32 q) {
  const V vq = Vec::set1(q), c = Vec::set1(shift);
  const VShoup f = broadcast(s);
  map1(out, a, n, [&](V x) { return add_mod(mul_shoup(x, f, vq), c, vq); });
}

// A negative x is its two's complement bit pattern less 2^64.
inline void reduce_signed_row(u32* out, const i64* values, u64 n, const Prime& p) {
  const V q = Vec::set1(p.q), two_64 = Vec::set1(p.r2.value);
  const VShoup r = broadcast(p.r), one = broadcast(p.one);
  for (u64 i = 0; i < n; i += Vec::kLanes) {
    V low, high;
    Vec::load_wide(values + i, low, high);
    const V pattern = add_mod(mul_shoup(high, r, q), mul_shoup(low, one, q), q);
    Vec::store(out + i, sub_mod(pattern, Vec::bit_and(two_64, Vec::sign_mask(high)), q));
  }
}

inline void expand_small_row(u32* out, const i32* values, u64 n, u32 q) {
  const V vq = Vec::set1(q);
  map1(out, reinterpret_cast<const u32*>(values), n,
       [=](V x) { return Vec::add(x, Vec::bit_and(vq, Vec::sign_mask(x))); });
}

inline constexpr ArithmeticTable kArithmetic = {add_row,
                                                sub_row,
                                                neg_row,
                                                mul_row,
                                                mul_add_row,
                                                mul_scalar_row,
                                                mul_add_scalar_row,
                                                add_scalar_row,
                                                scale_shift_row,
                                                reduce_signed_row,
                                                expand_small_row};

}  // namespace CRENEL_CPU_ISA
}  // namespace crenel::backend::cpu
