// 16 lanes of u32 (AVX-512 F, BW, DQ, VL). See vec_scalar.h for the meaning of every function.
#pragma once

#include <immintrin.h>

#include "backends/cpu/isa_table.h"

#define CRENEL_CPU_ISA avx512

namespace crenel::backend::cpu {
inline namespace CRENEL_CPU_ISA {

struct Vec {
  using V = __m512i;
  static constexpr u32 kLanes = 16;
  static constexpr u32 kLogLanes = 4;
  static constexpr int kMaxRadixLog = 3;  // 8 data + 14 twiddle registers of 32

  static V load(const u32* p) { return _mm512_loadu_si512(p); }
  static void store(u32* p, V x) { _mm512_storeu_si512(p, x); }
  static V set1(u32 x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  static V zero() { return _mm512_setzero_si512(); }
  static V add(V a, V b) { return _mm512_add_epi32(a, b); }
  static V sub(V a, V b) { return _mm512_sub_epi32(a, b); }
  static V min(V a, V b) { return _mm512_min_epu32(a, b); }
  static V bit_and(V a, V b) { return _mm512_and_si512(a, b); }
  static V bit_xor(V a, V b) { return _mm512_xor_si512(a, b); }
  static V sign_mask(V a) { return _mm512_srai_epi32(a, 31); }
  template <int bits>
  static V rotate_left(V a) {
    return _mm512_rol_epi32(a, bits);
  }
  static V mul_lo(V a, V b) { return _mm512_mullo_epi32(a, b); }
  static V odd_to_even(V a) { return _mm512_srli_epi64(a, 32); }
  // Odd lanes of `odd`, and the odd lanes of `even` moved one lane down.
  static V high_words(V even, V odd) {
    return _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
  }
  static V low_words(V even, V odd) {
    return _mm512_mask_shuffle_epi32(even, 0xAAAA, odd, _MM_PERM_CCAA);
  }
  static V mul_hi(V a, V b) {
    return high_words(_mm512_mul_epu32(a, b), _mm512_mul_epu32(odd_to_even(a), odd_to_even(b)));
  }
  static V mul_hi_dup(V a, V b) {
    return high_words(_mm512_mul_epu32(a, b), _mm512_mul_epu32(odd_to_even(a), b));
  }

  struct Wide {
    V even, odd;
  };
  static Wide wide_set1(u64 x) {
    const V v = _mm512_set1_epi64(static_cast<long long>(x));
    return {v, v};
  }
  static Wide wide_mul(V a, V b) {
    return {_mm512_mul_epu32(a, b), _mm512_mul_epu32(odd_to_even(a), odd_to_even(b))};
  }
  static Wide wide_add(Wide a, Wide b) {
    return {_mm512_add_epi64(a.even, b.even), _mm512_add_epi64(a.odd, b.odd)};
  }
  using Coefficient = V;
  static Coefficient coefficient(const u64* p) {
    return _mm512_set1_epi64(static_cast<long long>(*p));
  }
  struct Pair {
    V even, odd;
  };
  static Pair pair(V a) { return {a, odd_to_even(a)}; }
  static Wide wide_mul_add(Wide acc, Pair a, Coefficient c) {
    return {_mm512_add_epi64(acc.even, _mm512_mul_epu32(a.even, c)),
            _mm512_add_epi64(acc.odd, _mm512_mul_epu32(a.odd, c))};
  }
  static V set1_high(u32 q) {
    return _mm512_set1_epi64(static_cast<long long>(static_cast<u64>(q) << 32));
  }
  static Wide wide_fold(Wide a, V q_high) {
    return {min(a.even, sub(a.even, q_high)), min(a.odd, sub(a.odd, q_high))};
  }
  static V wide_montgomery(Wide a, V q, V q_inv) {
    const V t0 = _mm512_mul_epu32(_mm512_mul_epu32(a.even, q_inv), q);
    const V t1 = _mm512_mul_epu32(_mm512_mul_epu32(a.odd, q_inv), q);
    return high_words(sub(a.even, t0), sub(a.odd, t1));
  }

  template <u32 t>
  static void exchange(V& x, V& y) {
    const V a = x, b = y;
    if constexpr (t == 8) {
      x = _mm512_shuffle_i32x4(a, b, 0x44);
      y = _mm512_shuffle_i32x4(a, b, 0xEE);
    } else if constexpr (t == 4) {
      x = _mm512_mask_shuffle_i32x4(a, 0xF0F0, b, b, 0xA0);
      y = _mm512_mask_shuffle_i32x4(b, 0x0F0F, a, a, 0xF5);
    } else if constexpr (t == 2) {
      x = _mm512_mask_shuffle_epi32(a, 0xCCCC, b, _MM_PERM_BABA);
      y = _mm512_mask_shuffle_epi32(b, 0x3333, a, _MM_PERM_DCDC);
    } else {
      x = _mm512_mask_shuffle_epi32(a, 0xAAAA, b, _MM_PERM_CCAA);
      y = _mm512_mask_shuffle_epi32(b, 0x5555, a, _MM_PERM_DDBB);
    }
  }
  // After exchange<8>, <4>, <2>, <1> lane j of (x, y) holds elements 2j and 2j + 1.
  static void interleave(V& x, V& y) {
    const V low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const V high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    const V a = x, b = y;
    x = _mm512_permutex2var_epi32(a, low, b);
    y = _mm512_permutex2var_epi32(a, high, b);
  }
  static void deinterleave(V& x, V& y) {
    const V even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const V odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const V a = x, b = y;
    x = _mm512_permutex2var_epi32(a, even, b);
    y = _mm512_permutex2var_epi32(a, odd, b);
  }
  template <u32 t>
  static void load_twiddles(const Shoup* p, V& w, V& wq) {
    if constexpr (t == 8) {
      const V both = _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
      w = _mm512_permutexvar_epi32(_mm512_set_epi32(2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0), both);
      wq = _mm512_permutexvar_epi32(_mm512_set_epi32(3, 3, 3, 3, 3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1), both);
    } else if constexpr (t == 4) {
      const V both = _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
      w = _mm512_permutexvar_epi32(_mm512_set_epi32(6, 6, 6, 6, 4, 4, 4, 4, 2, 2, 2, 2, 0, 0, 0, 0), both);
      wq = _mm512_permutexvar_epi32(_mm512_set_epi32(7, 7, 7, 7, 5, 5, 5, 5, 3, 3, 3, 3, 1, 1, 1, 1), both);
    } else if constexpr (t == 2) {
      const V both = _mm512_loadu_si512(p);
      w = _mm512_shuffle_epi32(both, _MM_PERM_CCAA);
      wq = _mm512_shuffle_epi32(both, _MM_PERM_DDBB);
    } else {
      V a = _mm512_loadu_si512(p), b = _mm512_loadu_si512(p + 8);
      deinterleave(a, b);
      w = a, wq = b;
    }
  }
  // Low and high words of 16 consecutive 64-bit numbers.
  static void load_wide(const i64* p, V& low, V& high) {
    low = _mm512_loadu_si512(p), high = _mm512_loadu_si512(p + 8);
    deinterleave(low, high);
  }
  static V permute(V x, const u32* pattern) { return _mm512_permutexvar_epi32(load(pattern), x); }
  static V lane_numbers() {
    return _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  }
};

}  // namespace CRENEL_CPU_ISA
}  // namespace crenel::backend::cpu
