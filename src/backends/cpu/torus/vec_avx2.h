// 4 doubles (AVX2 and FMA). See vec_scalar.h for the meaning of every function.
#pragma once

#include <immintrin.h>

#include "backends/cpu/torus/table.h"

#define CRENEL_CPU_TORUS_ISA torus_avx2

namespace crenel::backend::cpu {
inline namespace CRENEL_CPU_TORUS_ISA {

struct Real {
  using D = __m256d;
  using I = __m256i;
  static constexpr u32 kLanes = 4;
  static constexpr u32 kLogLanes = 2;
  static constexpr int kMaxStages = 2;  // 8 data + 4 twiddle registers of 16
  static constexpr u32 kMaxRows = 2;

  static D load(const double* p) { return _mm256_loadu_pd(p); }
  static void store(double* p, D x) { _mm256_storeu_pd(p, x); }
  static D set1(double x) { return _mm256_set1_pd(x); }
  static D add(D a, D b) { return _mm256_add_pd(a, b); }
  static D sub(D a, D b) { return _mm256_sub_pd(a, b); }
  static D mul(D a, D b) { return _mm256_mul_pd(a, b); }
  static D fma(D a, D b, D c) { return _mm256_fmadd_pd(a, b, c); }
  static D fnma(D a, D b, D c) { return _mm256_fnmadd_pd(a, b, c); }
  static D fms(D a, D b, D c) { return _mm256_fmsub_pd(a, b, c); }
  static D fnms(D a, D b, D c) { return _mm256_fnmsub_pd(a, b, c); }
  static D gather(const double* table, const u32* index, u32 add, u32 factor, u32 mask) {
    const __m128i product =
        _mm_mullo_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(index)),
                        _mm_set1_epi32(static_cast<int>(factor)));
    const __m128i at = _mm_and_si128(_mm_add_epi32(product, _mm_set1_epi32(static_cast<int>(add))),
                                     _mm_set1_epi32(static_cast<int>(mask)));
    // the unmasked form starts from an undefined register, which GCC warns about
    return _mm256_mask_i32gather_pd(_mm256_setzero_pd(), table, at,
                                    _mm256_castsi256_pd(_mm256_set1_epi64x(-1)), 8);
  }
  static void transpose(D* x) {
    const D a = _mm256_permute2f128_pd(x[0], x[2], 0x20),
            b = _mm256_permute2f128_pd(x[1], x[3], 0x20);
    const D c = _mm256_permute2f128_pd(x[0], x[2], 0x31),
            d = _mm256_permute2f128_pd(x[1], x[3], 0x31);
    x[0] = _mm256_unpacklo_pd(a, b);
    x[1] = _mm256_unpackhi_pd(a, b);
    x[2] = _mm256_unpacklo_pd(c, d);
    x[3] = _mm256_unpackhi_pd(c, d);
  }

  static I load(const i64* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static void store(i64* p, I x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x); }
  static I set1(i64 x) { return _mm256_set1_epi64x(x); }
  static I add(I a, I b) { return _mm256_add_epi64(a, b); }
  static I sub(I a, I b) { return _mm256_sub_epi64(a, b); }
  static I bit_and(I a, I b) { return _mm256_and_si256(a, b); }
  static I bit_xor(I a, I b) { return _mm256_xor_si256(a, b); }
  // A logical shift of x + 2^63, less what 2^63 became.
  static I shift_right(I x, u32 bits) {
    const I shifted =
        _mm256_srl_epi64(bit_xor(x, set1(INT64_MIN)), _mm_cvtsi32_si128(static_cast<int>(bits)));
    return sub(shifted, set1(i64(1) << (63 - bits)));
  }
  static I greater(I a, I b) { return _mm256_cmpgt_epi64(a, b); }
  // x + 2^63 = h 2^32 + l in mantissas of 2^84 and 2^52: the first difference is exact, the sum
  // rounds once.
  static D to_double(I x) {
    const I l = _mm256_blend_epi32(x, bits(set1(0x1p52)), 0xAA);
    const I h = bit_xor(_mm256_srli_epi64(bit_xor(x, set1(INT64_MIN)), 32), bits(set1(0x1p84)));
    const D high = sub(_mm256_castsi256_pd(h), set1(0x1p84 + 0x1p63 + 0x1p52));
    return add(high, _mm256_castsi256_pd(l));
  }
  // Truncated, then x = h 2^32 + l, both found by the addition of 1.5 times a power of two.
  static I to_integer(D fraction) {
    const D x = _mm256_round_pd(fraction, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const D magic_high = set1(0x1.8p84), magic_low = set1(0x1.8p52);
    const D shifted = add(x, magic_high);
    const D rest = sub(x, sub(shifted, magic_high));
    const I h = sub(bits(shifted), bits(magic_high));
    const I l = sub(bits(add(rest, magic_low)), bits(magic_low));
    return add(_mm256_slli_epi64(h, 32), l);
  }
  static I bits(D x) { return _mm256_castpd_si256(x); }
  static D flip_sign(D x, D sign) { return _mm256_xor_pd(x, sign); }
};

}  // namespace CRENEL_CPU_TORUS_ISA
}  // namespace crenel::backend::cpu
