// 8 doubles (AVX-512 F, DQ). See vec_scalar.h for the meaning of every function.
#pragma once

#include <immintrin.h>

#include "backends/cpu/torus/table.h"

#define CRENEL_CPU_TORUS_ISA torus_avx512

namespace crenel::backend::cpu {
inline namespace CRENEL_CPU_TORUS_ISA {

struct Real {
  using D = __m512d;
  using I = __m512i;
  static constexpr u32 kLanes = 8;
  static constexpr u32 kLogLanes = 3;
  static constexpr int kMaxStages = 3;  // 16 data + 8 twiddle registers of 32
  static constexpr u32 kMaxRows = 4;

  static D load(const double* p) { return _mm512_loadu_pd(p); }
  static void store(double* p, D x) { _mm512_storeu_pd(p, x); }
  static D set1(double x) { return _mm512_set1_pd(x); }
  static D add(D a, D b) { return _mm512_add_pd(a, b); }
  static D sub(D a, D b) { return _mm512_sub_pd(a, b); }
  static D mul(D a, D b) { return _mm512_mul_pd(a, b); }
  static D fma(D a, D b, D c) { return _mm512_fmadd_pd(a, b, c); }
  static D fnma(D a, D b, D c) { return _mm512_fnmadd_pd(a, b, c); }
  static D fms(D a, D b, D c) { return _mm512_fmsub_pd(a, b, c); }
  static D fnms(D a, D b, D c) { return _mm512_fnmsub_pd(a, b, c); }
  static D gather(const double* table, const u32* index, u32 add, u32 factor, u32 mask) {
    const __m256i product =
        _mm256_mullo_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(index)),
                           _mm256_set1_epi32(static_cast<int>(factor)));
    const __m256i at =
        _mm256_and_si256(_mm256_add_epi32(product, _mm256_set1_epi32(static_cast<int>(add))),
                         _mm256_set1_epi32(static_cast<int>(mask)));
    return _mm512_i32gather_pd(at, table, 8);
  }
  // Quarters, then pairs of lanes, then single lanes change places.
  static void transpose(D* x) {
    D a[8], b[8];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      a[k] = _mm512_shuffle_f64x2(x[k], x[k + 4], 0x44);
      a[k + 4] = _mm512_shuffle_f64x2(x[k], x[k + 4], 0xEE);
    }
    // a[k] = quarters 0, 1 of rows k, k + 4; a[k + 4] = quarters 2, 3
#pragma GCC unroll 2
    for (int h = 0; h < 8; h += 4)
#pragma GCC unroll 2
      for (int k = 0; k < 2; ++k) {
        b[h + k] = _mm512_shuffle_f64x2(a[h + k], a[h + k + 2], 0x88);
        b[h + k + 2] = _mm512_shuffle_f64x2(a[h + k], a[h + k + 2], 0xDD);
      }
    // b[h + k] = one quarter of rows k, k + 4, k + 2, k + 6
    const I low = _mm512_set_epi64(14, 6, 10, 2, 12, 4, 8, 0);
    const I high = _mm512_set_epi64(15, 7, 11, 3, 13, 5, 9, 1);
#pragma GCC unroll 4
    for (int h = 0; h < 4; ++h) {
      const D even = b[2 * h], odd = b[2 * h + 1];
      x[2 * h] = _mm512_permutex2var_pd(even, low, odd);
      x[2 * h + 1] = _mm512_permutex2var_pd(even, high, odd);
    }
  }

  static I load(const i64* p) { return _mm512_loadu_si512(p); }
  static void store(i64* p, I x) { _mm512_storeu_si512(p, x); }
  static I set1(i64 x) { return _mm512_set1_epi64(x); }
  static I add(I a, I b) { return _mm512_add_epi64(a, b); }
  static I sub(I a, I b) { return _mm512_sub_epi64(a, b); }
  static I bit_and(I a, I b) { return _mm512_and_si512(a, b); }
  static I bit_xor(I a, I b) { return _mm512_xor_si512(a, b); }
  static I shift_right(I x, u32 bits) {
    return _mm512_sra_epi64(x, _mm_cvtsi32_si128(static_cast<int>(bits)));
  }
  static I greater(I a, I b) { return _mm512_movm_epi64(_mm512_cmpgt_epi64_mask(a, b)); }
  static D to_double(I x) { return _mm512_cvtepi64_pd(x); }
  static I to_integer(D x) { return _mm512_cvttpd_epi64(x); }
  static I bits(D x) { return _mm512_castpd_si512(x); }
  static D flip_sign(D x, D sign) { return _mm512_xor_pd(x, sign); }
};

}  // namespace CRENEL_CPU_TORUS_ISA
}  // namespace crenel::backend::cpu
