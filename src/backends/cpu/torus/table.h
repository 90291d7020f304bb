// The per-ISA functions of TFHE: the double-precision transform in split form, sums of products
// with the bootstrapping key, and rows of LWE ciphertexts. Plain data only (isa_table.h says why).
//
// A polynomial z is M points in vectors of `lanes`, [vector][re, im][lane]. Spectra of several
// polynomials are interleaved, [vector][polynomial][re, im][lane], so that sums of products read
// them in order. With L = log2(lanes), lane k of a spectrum's vector lanes c + j is leaf lanes^2 c
// + lanes k + j of the tree of ring/fft.h: the last levels run across lanes, after a transposition
// that nothing undoes.
#pragma once

#include "crenel/core/types.h"

namespace crenel::backend::cpu {

struct TorusFft {
  u32 log_points;          ///< log2 M, at least 2 L
  const double* twiddles;  ///< [M][2], ring/fft.h's order
  /// [block of lanes^2 points][4 entries for 8 lanes, 2 for 4][re, im][lane]: the even nodes'
  /// twiddles of the last L levels, level by level, lane k for block k of the transposed points.
  const double* lane_twiddles;
};

/// Between integers of an accumulator and operands of the transform, one polynomial.
struct TorusRounding {
  u32 log_n;
  bool raising;
  bool reduces;  ///< device::reduces_product
  u64 modulus;   ///< Q
  u32 base_log;  ///< gadget
  u32 digits;
  u32 piece_log;           ///< split: log2 of the weight of upper pieces; else 0
  double scale;            ///< raising: (Q / T) / M; gadget: 1 / M
  double modulus_double;   ///< Q
  double modulus_inverse;  ///< 1 / Q
};

/// Chinese remainders modulo the key's modulus, and from there to the accumulator.
struct TorusCrt {
  u32 p0, p1;                     ///< p1 = 0: one prime only
  u32 inverse, inverse_quotient;  ///< Shoup constant of 1 / p0 modulo p1
  bool raising;
  u64 modulus;      ///< Q
  u64 key_modulus;  ///< p0 p1
  double ratio;     ///< Q / (p0 p1)
  double key_modulus_inverse;
};

/// sum[o] = monomials of exponent e applied to sum_t in[t] key[o][t], for rows in lock-step; of
/// groups the products with the bundle sum_S X^(c_S) key[o][t][S], or sum_S (X^(c_S) - 1) times
/// those with key[o][t][S]. The spectra of the `outs` <= `terms` sums replace those of the
/// operands, from their start.
struct TorusSumArgs {
  /// [vector][out][term][P re, P im, D re, D im (binary: P only; groups: K_S, ascending, from S = 1
  /// with differences)][lane]
  const double* key;
  double* const* spectra;  ///< [row]
  double* buffer;          ///< 4 rows of `outs` vectors
  const u32* exponent;     ///< [row] e < 2N; groups: [row][S]
  u32 rows, terms, outs;
  u32 vectors;  ///< M / lanes
  u32 two_n;
  bool ternary;
  u32 bundle;            ///< groups: values of S; else 0
  bool differences;      ///< device::TorusPlan's
  const double* cosine;  ///< [2N] of pi j / N
  /// [group of 4 vectors][lane] of ring/fft.h's exponents for the group's first vector; the other
  /// three lie N, N/2 and 3N/2 further.
  const u32* exponents;
};

/// Bytes that a transform prefetches from `ahead` (may be null) for each block of lanes^2 points:
/// about what memory delivers meanwhile.
inline constexpr u32 kTorusPrefetch = 2048;
/// Bytes that sums read the key ahead.
inline constexpr u32 kTorusLead = 4096;

struct TorusTable {
  u32 lanes;
  /// out[operand] (`stride` apart) = the digits of acc[N], or their pieces, as transform operands.
  /// acc: raising: any integers congruent modulo Q; gadget: centred.
  void (*decompose)(double* out, u64 stride, const i64* acc, const TorusRounding& rounding);
  /// The spectrum's vectors are `stride` doubles apart; forward overwrites z.
  void (*forward)(double* spectrum, u64 stride, double* z, const TorusFft& fft, const char* ahead);
  void (*inverse)(double* z, const double* spectrum, u64 stride, const TorusFft& fft,
                  const char* ahead);
  void (*sum)(const TorusSumArgs& args);
  /// acc += the rounded sum; keeps acc as decompose wants it.
  void (*accumulate)(i64* acc, const double* z, const TorusRounding& rounding);
  /// Integer path. plus[f] = powers[e exponents[f] mod 2n], minus with -e.
  void (*monomials)(u32* plus, u32* minus, const u32* powers, const u32* exponents, u32 e, u32 n);
  /// out[digit][count] of acc[count], which is as decompose takes it.
  void (*digits)(i64* out, u64 count, const i64* acc, const TorusRounding& rounding);
  /// acc += the sum with residues x and y (not read with one prime), rounded when raising.
  void (*combine)(i64* acc, const u32* x, const u32* y, u32 n, const TorusCrt& crt);
  /// sum -= rows[0] + ... + rows[count - 1], `words` words each.
  void (*subtract_rows32)(u32* sum, const u32* const* rows, u32 count, u32 words);
  void (*subtract_rows64)(u64* sum, const u64* const* rows, u32 count, u32 words);
  /// sum -= factors[0] rows[0] + ... + factors[count - 1] rows[count - 1], rows of `words` words
  /// one after the other; modulo 2^32.
  void (*subtract_products)(u32* sum, const u32* rows, const u32* factors, u32 count, u32 words);
  /// sum_i a_i s_i; no branch and no address depends on s.
  u32 (*dot32)(const u32* a, const i8* s, u32 count);
  u64 (*dot64)(const u64* a, const i8* s, u32 count);
};

}  // namespace crenel::backend::cpu
