// 4 lanes of u32 (WebAssembly's SIMD). See vec_scalar.h for the meaning of every function.
#pragma once

#include <wasm_simd128.h>

#include "backends/cpu/poly/isa_table.h"

#define CRENEL_CPU_ISA simd128

namespace crenel::backend::cpu {
inline namespace CRENEL_CPU_ISA {

struct Vec {
  using V = v128_t;
  static constexpr u32 kLanes = 4;
  static constexpr u32 kLogLanes = 2;
  static constexpr int kMaxRadixLog = 2;

  static V load(const u32* p) { return wasm_v128_load(p); }
  static void store(u32* p, V x) { wasm_v128_store(p, x); }
  static V load_repeated(const u32* p, u32 shift) {
    if (shift == 0) return load(p);
    if (shift == 1) return wasm_u32x4_make(p[0], p[0], p[1], p[1]);
    return set1(p[0]);
  }
  static V set1(u32 x) { return wasm_u32x4_splat(x); }
  static V zero() { return set1(0); }
  static V add(V a, V b) { return wasm_i32x4_add(a, b); }
  static V sub(V a, V b) { return wasm_i32x4_sub(a, b); }
  static V min(V a, V b) { return wasm_u32x4_min(a, b); }
  static V bit_and(V a, V b) { return wasm_v128_and(a, b); }
  static V bit_xor(V a, V b) { return wasm_v128_xor(a, b); }
  static V sign_mask(V a) { return wasm_i32x4_shr(a, 31); }
  template <int bits>
  static V rotate_left(V a) {
    return wasm_v128_or(wasm_i32x4_shl(a, bits), wasm_u32x4_shr(a, 32 - bits));
  }
  static V mul_lo(V a, V b) { return wasm_i32x4_mul(a, b); }
  static V even_words(V a, V b) { return wasm_i32x4_shuffle(a, b, 0, 2, 4, 6); }
  static V odd_words(V a, V b) { return wasm_i32x4_shuffle(a, b, 1, 3, 5, 7); }
  static V mul_hi(V a, V b) {
    return odd_words(wasm_u64x2_extmul_low_u32x4(a, b), wasm_u64x2_extmul_high_u32x4(a, b));
  }
  static V mul_hi_dup(V a, V b) { return mul_hi(a, b); }

  struct Wide {
    V low, high;  ///< of lanes 0 and 1, of lanes 2 and 3
  };
  static Wide wide_set1(u64 x) {
    const V v = wasm_u64x2_splat(x);
    return {v, v};
  }
  static Wide wide_mul(V a, V b) {
    return {wasm_u64x2_extmul_low_u32x4(a, b), wasm_u64x2_extmul_high_u32x4(a, b)};
  }
  static Wide wide_add(Wide a, Wide b) {
    return {wasm_i64x2_add(a.low, b.low), wasm_i64x2_add(a.high, b.high)};
  }
  using Coefficient = V;
  static Coefficient coefficient(const u64* p) { return set1(static_cast<u32>(*p)); }
  using Pair = V;
  static Pair pair(V a) { return a; }
  static Wide wide_mul_add(Wide acc, Pair a, Coefficient c) {
    return wide_add(acc, wide_mul(a, c));
  }
  static V set1_high(u32 q) { return wasm_u64x2_splat(static_cast<u64>(q) << 32); }
  static Wide wide_fold(Wide a, V q_high) {
    return {min(a.low, sub(a.low, q_high)), min(a.high, sub(a.high, q_high))};
  }
  static V wide_high(Wide a) { return odd_words(a.low, a.high); }
  static V wide_quotient(Wide a, V q, V q_inv) {
    return mul_hi(mul_lo(even_words(a.low, a.high), q_inv), q);
  }

  template <u32 t>
  static void split(V& x, V& y) {
    const V a = x, b = y;
    if constexpr (t == 2) {
      x = wasm_i32x4_shuffle(a, b, 0, 1, 4, 5);
      y = wasm_i32x4_shuffle(a, b, 2, 3, 6, 7);
    } else {
      x = wasm_i32x4_shuffle(a, b, 0, 4, 2, 6);
      y = wasm_i32x4_shuffle(a, b, 1, 5, 3, 7);
    }
  }
  template <u32 t>
  static void merge(V& x, V& y) {
    split<t>(x, y);
  }
  static void unjoin(V& x, V& y) { deinterleave(x, y); }
  static void join(V& x, V& y) {
    const V a = x, b = y;
    x = wasm_i32x4_shuffle(a, b, 0, 4, 1, 5);
    y = wasm_i32x4_shuffle(a, b, 2, 6, 3, 7);
  }
  static void deinterleave(V& x, V& y) {
    const V a = x, b = y;
    x = even_words(a, b);
    y = odd_words(a, b);
  }
  template <u32 t, bool>
  static void load_twiddles(const Shoup* p, V& w, V& wq) {
    V a = wasm_v128_load(p);
    if constexpr (t == 2) {
      w = wasm_i32x4_shuffle(a, a, 0, 0, 2, 2);
      wq = wasm_i32x4_shuffle(a, a, 1, 1, 3, 3);
    } else {
      V b = wasm_v128_load(p + 2);
      deinterleave(a, b);
      w = a, wq = b;
    }
  }
  static void load_wide(const i64* p, V& low, V& high) {
    low = wasm_v128_load(p);
    high = wasm_v128_load(p + 2);
    deinterleave(low, high);
  }
  static V permute(V x, const u32* pattern) {
    // word k is the bytes 4k .. 4k + 3
    const V bytes = mul_lo(load(pattern), set1(0x04040404));
    return wasm_i8x16_swizzle(x, add(bytes, set1(0x03020100)));
  }
  static V lane_numbers() { return wasm_u32x4_make(0, 1, 2, 3); }
};

}  // namespace CRENEL_CPU_ISA
}  // namespace crenel::backend::cpu
