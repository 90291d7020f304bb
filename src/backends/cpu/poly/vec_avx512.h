// 16 lanes of u32 (AVX-512 F, BW, DQ, VL). See vec_scalar.h for the meaning of every function.
#pragma once

#include <immintrin.h>

#include "backends/cpu/poly/isa_table.h"

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
  static V load_repeated(const u32* p, u32 shift) {
    const V order = _mm512_srl_epi32(lane_numbers(), _mm_cvtsi32_si128(static_cast<int>(shift)));
    const auto wanted = static_cast<__mmask16>((1u << (kLanes >> shift)) - 1);
    return _mm512_permutexvar_epi32(order, _mm512_maskz_loadu_epi32(wanted, p));
  }
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
  // The odd lanes stay: nothing reads them. A shuffle, because fewer pipes can shift.
  static V odd_to_even(V a) { return _mm512_shuffle_epi32(a, _MM_PERM_DDBB); }
  // Odd lanes of `odd`, and the odd lanes of `even` moved one lane down.
  static V high_words(V even, V odd) {
    return _mm512_mask_shuffle_epi32(odd, 0x5555, even, _MM_PERM_DDBB);
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
    const u64 high = static_cast<u64>(q) << 32;
    return _mm512_set1_epi64(static_cast<long long>(high));
  }
  static Wide wide_fold(Wide a, V q_high) {
    return {min(a.even, sub(a.even, q_high)), min(a.odd, sub(a.odd, q_high))};
  }
  static V wide_high(Wide a) { return high_words(a.even, a.odd); }
  static V wide_quotient(Wide a, V q, V q_inv) {
    return high_words(_mm512_mul_epu32(_mm512_mul_epu32(a.even, q_inv), q),
                      _mm512_mul_epu32(_mm512_mul_epu32(a.odd, q_inv), q));
  }

  // Lane orders of the stages inside vectors. A pair of vectors holds elements 0..31, A_k and B_k
  // are quarters of the two. Only shuffles that leave their operands alone are used (masked ones
  // cost a copy). Forward and backward, quarters are in the order A0 B0 A2 B2 / A1 B1 A3 B3 from
  // stage 4 to stage 1; at stage 8 they are A0 A1 B0 B1 / ... forward and A0 B0 A1 B1 / ...
  // backward.
  alignas(64) static constexpr u32 kJoinLow[16] = {0, 16, 2,  18, 1, 17, 3,  19,
                                                   8, 24, 10, 26, 9, 25, 11, 27};
  alignas(64) static constexpr u32 kJoinHigh[16] = {4,  20, 6,  22, 5,  21, 7,  23,
                                                    12, 28, 14, 30, 13, 29, 15, 31};
  alignas(64) static constexpr u32 kUnjoinX[16] = {0, 4,  2,  6,  16, 20, 18, 22,
                                                   8, 12, 10, 14, 24, 28, 26, 30};
  alignas(64) static constexpr u32 kUnjoinY[16] = {1, 5,  3,  7,  17, 21, 19, 23,
                                                   9, 13, 11, 15, 25, 29, 27, 31};
  alignas(64) static constexpr u32 kTwiddle1[16] = {0, 4,  2,  6,  16, 20, 18, 22,
                                                    8, 12, 10, 14, 24, 28, 26, 30};
  alignas(64) static constexpr u32 kTwiddle2[16] = {0, 0, 2, 2, 8,  8,  10, 10,
                                                    4, 4, 6, 6, 12, 12, 14, 14};
  alignas(64) static constexpr u32 kTwiddle4[16] = {0, 0, 0, 0, 4, 4, 4, 4, 2, 2, 2, 2, 6, 6, 6, 6};
  alignas(64) static constexpr u32 kTwiddle8[16] = {0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2};
  alignas(64) static constexpr u32 kTwiddle8Inverse[16] = {0, 0, 0, 0, 2, 2, 2, 2,
                                                           0, 0, 0, 0, 2, 2, 2, 2};

  template <u32 t>
  static void split(V& x, V& y) {
    const V a = x, b = y;
    if constexpr (t == 8) {
      x = _mm512_shuffle_i32x4(a, b, 0x44);
      y = _mm512_shuffle_i32x4(a, b, 0xEE);
    } else if constexpr (t == 4) {
      x = _mm512_shuffle_i32x4(a, b, 0x88);
      y = _mm512_shuffle_i32x4(a, b, 0xDD);
    } else if constexpr (t == 2) {
      x = _mm512_unpacklo_epi64(a, b);
      y = _mm512_unpackhi_epi64(a, b);
    } else {
      const __m512 fa = _mm512_castsi512_ps(a), fb = _mm512_castsi512_ps(b);
      x = _mm512_castps_si512(_mm512_shuffle_ps(fa, fb, 0x88));
      y = _mm512_castps_si512(_mm512_shuffle_ps(fa, fb, 0xDD));
    }
  }
  template <u32 t>
  static void merge(V& x, V& y) {
    const V a = x, b = y;
    if constexpr (t == 8) {
      x = _mm512_shuffle_i32x4(a, b, 0x88);
      y = _mm512_shuffle_i32x4(a, b, 0xDD);
    } else if constexpr (t == 4) {
      x = _mm512_shuffle_i32x4(a, b, 0x44);
      y = _mm512_shuffle_i32x4(a, b, 0xEE);
    } else if constexpr (t == 2) {
      x = _mm512_unpacklo_epi64(a, b);
      y = _mm512_unpackhi_epi64(a, b);
    } else {
      x = _mm512_unpacklo_epi32(a, b);
      y = _mm512_unpackhi_epi32(a, b);
    }
  }
  static void join(V& x, V& y) {
    const V a = x, b = y;
    x = _mm512_permutex2var_epi32(a, load(kJoinLow), b);
    y = _mm512_permutex2var_epi32(a, load(kJoinHigh), b);
  }
  static void unjoin(V& x, V& y) {
    const V a = x, b = y;
    x = _mm512_permutex2var_epi32(a, load(kUnjoinX), b);
    y = _mm512_permutex2var_epi32(a, load(kUnjoinY), b);
  }
  static void deinterleave(V& x, V& y) {
    const V even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const V odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const V a = x, b = y;
    x = _mm512_permutex2var_epi32(a, even, b);
    y = _mm512_permutex2var_epi32(a, odd, b);
  }
  template <u32 t, bool inverse>
  static void load_twiddles(const Shoup* p, V& w, V& wq) {
    const V one = _mm512_set1_epi32(1);
    if constexpr (t == 1) {
      const V a = _mm512_loadu_si512(p), b = _mm512_loadu_si512(p + 8), order = load(kTwiddle1);
      w = _mm512_permutex2var_epi32(a, order, b);
      wq = _mm512_permutex2var_epi32(a, add(order, one), b);
    } else {
      V both, order;
      if constexpr (t == 8) {
        both = _mm512_castsi128_si512(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
        order = load(inverse ? kTwiddle8Inverse : kTwiddle8);
      } else if constexpr (t == 4) {
        both = _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
        order = load(kTwiddle4);
      } else {
        both = _mm512_loadu_si512(p);
        order = load(kTwiddle2);
      }
      w = _mm512_permutexvar_epi32(order, both);
      wq = _mm512_permutexvar_epi32(add(order, one), both);
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
