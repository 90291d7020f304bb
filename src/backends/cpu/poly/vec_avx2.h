// 8 lanes of u32 (AVX2). See vec_scalar.h for the meaning of every function.
#pragma once

#include <immintrin.h>

#include "backends/cpu/poly/isa_table.h"

#define CRENEL_CPU_ISA avx2

namespace crenel::backend::cpu {
inline namespace CRENEL_CPU_ISA {

struct Vec {
  using V = __m256i;
  static constexpr u32 kLanes = 8;
  static constexpr u32 kLogLanes = 3;
  static constexpr int kMaxRadixLog = 2;  // 16 registers

  static V load(const u32* p) { return _mm256_loadu_si256(reinterpret_cast<const V*>(p)); }
  static void store(u32* p, V x) { _mm256_storeu_si256(reinterpret_cast<V*>(p), x); }
  static V load_repeated(const u32* p, u32 shift) {
    const V order = _mm256_srl_epi32(lane_numbers(), _mm_cvtsi32_si128(static_cast<int>(shift)));
    const V wanted = _mm256_cmpgt_epi32(set1(kLanes >> shift), lane_numbers());
    const V words = _mm256_maskload_epi32(reinterpret_cast<const int*>(p), wanted);
    return _mm256_permutevar8x32_epi32(words, order);
  }
  static V set1(u32 x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  static V zero() { return _mm256_setzero_si256(); }
  static V add(V a, V b) { return _mm256_add_epi32(a, b); }
  static V sub(V a, V b) { return _mm256_sub_epi32(a, b); }
  static V min(V a, V b) { return _mm256_min_epu32(a, b); }
  static V bit_and(V a, V b) { return _mm256_and_si256(a, b); }
  static V bit_xor(V a, V b) { return _mm256_xor_si256(a, b); }
  static V sign_mask(V a) { return _mm256_srai_epi32(a, 31); }
  template <int bits>
  static V rotate_left(V a) {
    return _mm256_or_si256(_mm256_slli_epi32(a, bits), _mm256_srli_epi32(a, 32 - bits));
  }
  static V mul_lo(V a, V b) { return _mm256_mullo_epi32(a, b); }
  static V odd_to_even(V a) { return _mm256_srli_epi64(a, 32); }
  static V high_words(V even, V odd) { return _mm256_blend_epi32(odd_to_even(even), odd, 0xAA); }
  static V mul_hi(V a, V b) {
    return high_words(_mm256_mul_epu32(a, b), _mm256_mul_epu32(odd_to_even(a), odd_to_even(b)));
  }
  static V mul_hi_dup(V a, V b) {
    return high_words(_mm256_mul_epu32(a, b), _mm256_mul_epu32(odd_to_even(a), b));
  }

  struct Wide {
    V even, odd;
  };
  static Wide wide_set1(u64 x) {
    const V v = _mm256_set1_epi64x(static_cast<long long>(x));
    return {v, v};
  }
  static Wide wide_mul(V a, V b) {
    return {_mm256_mul_epu32(a, b), _mm256_mul_epu32(odd_to_even(a), odd_to_even(b))};
  }
  static Wide wide_add(Wide a, Wide b) {
    return {_mm256_add_epi64(a.even, b.even), _mm256_add_epi64(a.odd, b.odd)};
  }
  using Coefficient = V;
  static Coefficient coefficient(const u64* p) {
    return _mm256_set1_epi64x(static_cast<long long>(*p));
  }
  struct Pair {
    V even, odd;
  };
  static Pair pair(V a) { return {a, odd_to_even(a)}; }
  static Wide wide_mul_add(Wide acc, Pair a, Coefficient c) {
    return {_mm256_add_epi64(acc.even, _mm256_mul_epu32(a.even, c)),
            _mm256_add_epi64(acc.odd, _mm256_mul_epu32(a.odd, c))};
  }
  static V set1_high(u32 q) {
    const u64 high = static_cast<u64>(q) << 32;
    return _mm256_set1_epi64x(static_cast<long long>(high));
  }
  static Wide wide_fold(Wide a, V q_high) {
    return {min(a.even, sub(a.even, q_high)), min(a.odd, sub(a.odd, q_high))};
  }
  static V wide_high(Wide a) { return high_words(a.even, a.odd); }
  static V wide_quotient(Wide a, V q, V q_inv) {
    return high_words(_mm256_mul_epu32(_mm256_mul_epu32(a.even, q_inv), q),
                      _mm256_mul_epu32(_mm256_mul_epu32(a.odd, q_inv), q));
  }

  template <u32 t>
  static void split(V& x, V& y) {
    const V a = x, b = y;
    if constexpr (t == 4) {
      x = _mm256_permute2x128_si256(a, b, 0x20);
      y = _mm256_permute2x128_si256(a, b, 0x31);
    } else if constexpr (t == 2) {
      x = _mm256_unpacklo_epi64(a, b);
      y = _mm256_unpackhi_epi64(a, b);
    } else {
      x = _mm256_blend_epi32(a, _mm256_slli_epi64(b, 32), 0xAA);
      y = _mm256_blend_epi32(odd_to_even(a), b, 0xAA);
    }
  }
  template <u32 t>
  static void merge(V& x, V& y) {
    split<t>(x, y);
  }
  static void unjoin(V& x, V& y) { deinterleave(x, y); }
  static void join(V& x, V& y) {
    const V low = _mm256_unpacklo_epi32(x, y), high = _mm256_unpackhi_epi32(x, y);
    x = _mm256_permute2x128_si256(low, high, 0x20);
    y = _mm256_permute2x128_si256(low, high, 0x31);
  }
  static void deinterleave(V& x, V& y) {
    const V order = _mm256_set_epi32(7, 5, 3, 1, 6, 4, 2, 0);
    const V a = _mm256_permutevar8x32_epi32(x, order), b = _mm256_permutevar8x32_epi32(y, order);
    x = _mm256_permute2x128_si256(a, b, 0x20);
    y = _mm256_permute2x128_si256(a, b, 0x31);
  }
  template <u32 t, bool>
  static void load_twiddles(const Shoup* p, V& w, V& wq) {
    if constexpr (t == 4) {
      const V both =
          _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
      w = _mm256_permutevar8x32_epi32(both, _mm256_set_epi32(2, 2, 2, 2, 0, 0, 0, 0));
      wq = _mm256_permutevar8x32_epi32(both, _mm256_set_epi32(3, 3, 3, 3, 1, 1, 1, 1));
    } else if constexpr (t == 2) {
      const V both = _mm256_loadu_si256(reinterpret_cast<const V*>(p));
      w = _mm256_shuffle_epi32(both, 0xA0);
      wq = _mm256_shuffle_epi32(both, 0xF5);
    } else {
      V a = _mm256_loadu_si256(reinterpret_cast<const V*>(p));
      V b = _mm256_loadu_si256(reinterpret_cast<const V*>(p + 4));
      deinterleave(a, b);
      w = a, wq = b;
    }
  }
  static void load_wide(const i64* p, V& low, V& high) {
    low = _mm256_loadu_si256(reinterpret_cast<const V*>(p));
    high = _mm256_loadu_si256(reinterpret_cast<const V*>(p + 4));
    deinterleave(low, high);
  }
  static V permute(V x, const u32* pattern) {
    return _mm256_permutevar8x32_epi32(x, load(pattern));
  }
  static V lane_numbers() { return _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0); }
};

}  // namespace CRENEL_CPU_ISA
}  // namespace crenel::backend::cpu
