// The seam between portable code and per-ISA code: tables of functions on raw rows of words.
//
// The per-ISA translation units are compiled with wider instruction sets than the rest of the
// library, so they include nothing that has inline functions the linker could merge with portable
// copies: this header has plain data only. Every row length is a multiple of their lanes; rows are
// residues modulo one prime q < 2^31, canonical on both sides unless stated.
#pragma once

#include "crenel/core/types.h"
#include "math/shoup.h"  // for the type only: none of its functions may be used in per-ISA code

namespace crenel::backend::cpu {

/// Rows shorter than this (tiny test rings) take the scalar path.
inline constexpr u32 kMinVectorRow = 64;
/// Lanes of the widest path.
inline constexpr u32 kMaxLanes = 16;

/// A constant c in [0, q) and floor(c * 2^32 / q).
using Shoup = math::ShoupConstant<u32>;

/// One prime q < 2^31 with the constants of its reductions; R = 2^32.
struct Prime {
  u32 q;
  u32 q_inv;  ///< q^-1 mod R
  Shoup one;  ///< 1: mul_shoup by it reduces any word
  Shoup r;    ///< R mod q: leaves Montgomery form
  Shoup r2;   ///< R^2 mod q
  Shoup r3;   ///< R^3 mod q
};

/// The automorphism of evaluation form, which in bit-reversed order moves whole aligned blocks of
/// `lanes` elements and permutes inside them: out block i is in block source[i], lane j of it taken
/// from lane pattern[shift[i]][j].
struct BlockPermutation {
  const u32* source;
  const u8* shift;
  const u32 (*pattern)[kMaxLanes];
};

/// Arguments of a forward transform with its tail:
///   out = ntt(in) + tail_scale * tail (when tail is not null) + addend (when not null).
/// out == in is allowed; the others must not overlap out.
struct NttArgs {
  u32* out;
  const u32* in;
  u32 log_n;
  u32 q;
  const Shoup* roots;
  const u32* tail;
  Shoup tail_scale;
  const u32* addend;
};

/// Arguments of an inverse transform, scaled and shifted: out = (intt(in) * N) * scale + shift,
/// where scale includes 1/N and scale_root = scale * inverse_roots[1].
struct InttArgs {
  u32* out;
  const u32* in;
  u32 log_n;
  u32 q;
  const Shoup* roots;  ///< inverse roots
  Shoup scale;
  Shoup scale_root;
  u32 shift;
};

/// Sums of up to 128 products below 2^31 p are below p * 2^32 * 2^kMaxFolds.
inline constexpr u32 kMaxFolds = 6;

/// One destination of a base conversion. Coefficients are in Montgomery form, so that the final
/// Montgomery reduction leaves the plain residue.
struct ConvertTarget {
  u32 p;
  u32 p_inv;
  u64 offset;           ///< offset * R mod p
  const u64* matrix;    ///< matrix_ij * R mod p, one a source
  u32 fold[kMaxFolds];  ///< p << k where the sum may reach it (times 2^32), else 0: no fold
};

/// out_i = (sum_j z_j * matrix_ij + offset_i) mod p_i for `count` coefficients from `begin`. A
/// rounded conversion has one more row of z and column of the matrix, which convert fills:
///   (sum_j z_j * reciprocal_j + reciprocal_start) / 2^shift = u + largest quotient
struct ConvertArgs {
  u32* z;  ///< source rows, z_stride words apart
  u64 z_stride;
  u32 sources;            ///< rows that are there
  const u64* reciprocal;  ///< one a source, null where the quotient is kept
  u64 reciprocal_start;
  u32 reciprocal_unit;  ///< 2^(64 - shift)
  u32 targets;
  const ConvertTarget* target;
  u32* const* out;  ///< one row a target
  u32 folds;        ///< entries of ConvertTarget::fold that are not 0 in some target
  bool lazy;        ///< every sum stays below 2^64; otherwise it is folded after every two terms
  u64 begin;
  u64 count;
};

/// out_c (+)= sum_d digit_d * key_(d,c), c = 0, 1.
struct KeyMultiplyArgs {
  u32* out0;
  u32* out1;
  const u32* const* digits;
  const u32* const* key0;
  const u32* const* key1;
  u32 count;
  u64 n;
  const u32*
      lifted;  ///< hoisted rotate-and-sum: lifted * lift is added to component 0, null: nothing
  Shoup lift;
};

/// A baby step of a hoisted linear transform, permuted, with the factor 1/R that Montgomery
/// reduction leaves:
///   out_c = permutation(sum_d digit_d * key_(d,c) + lift * lifted_c) / R, c = 0, 1.
/// n elements that the permutation maps onto n elements: vector i goes to vector target.source[i] -
/// first_target.
struct BabyStepArgs {
  u32* out0;
  u32* out1;
  const u32* const* digits;
  const u32* const* key0;
  const u32* const* key1;
  u32 count;  ///< digits, may be 0
  u64 n;
  const u32* lifted0;  ///< may be null
  const u32* lifted1;  ///< may be null
  u32 lift;
  BlockPermutation target;
  u32 first_target;
  /// The rows of the key of the step after this, of which the first words are fetched meanwhile.
  const u32* const* next0;
  const u32* const* next1;
  u32 next_count;  ///< may be 0
};

/// out[g] = scale / R * sum_b plain[g][b] * in[b], for `components` (1 or 2) rows each.
struct PlainSumArgs {
  u32* const* out;          ///< [giant][component]
  const u32* const* in;     ///< [baby][component]
  const u32* const* plain;  ///< [giant][baby], null where there is none
  u32 giants;
  u32 babies;
  u32 components;
  u64 n;
  u32 shift;  ///< element i is multiplied with word i >> shift of plain[g][b]
  Shoup scale;
};

/// out = sum_k scalars[k] * in[k] + constant; out may be one of in.
struct CombinationArgs {
  u32* out;
  const u32* const* in;
  const u64* scalars;  ///< words
  u32 terms;
  u64 n;
  u32 constant;
};

struct ArithmeticTable {
  void (*add)(u32* out, const u32* a, const u32* b, u64 n, u32 q);
  void (*sub)(u32* out, const u32* a, const u32* b, u64 n, u32 q);
  void (*neg)(u32* out, const u32* a, u64 n, u32 q);
  void (*mul)(u32* out, const u32* a, const u32* b, u64 n, const Prime& p);
  void (*mul_add)(u32* out, const u32* a, const u32* b, u64 n, const Prime& p);
  void (*mul_scalar)(u32* out, const u32* a, u64 n, Shoup s, u32 q);
  void (*mul_add_scalar)(u32* out, const u32* a, u64 n, Shoup s, u32 q);
  void (*add_scalar)(u32* out, const u32* a, u64 n, u32 s, u32 q);
  void (*scale_shift)(u32* out, const u32* a, u64 n, Shoup s, u32 shift, u32 q);  ///< a * s + shift
  void (*reduce_signed)(u32* out, const i64* values, u64 n, const Prime& p);
  void (*expand_small)(u32* out, const i32* values, u64 n, u32 q);  ///< |values| < q
};

struct FusedTable {
  u32 lanes;  ///< block length of BlockPermutation on this path
  void (*tensor)(u32* const out[3], const u32* const a[2], const u32* const b[2], u64 n,
                 const Prime& p);
  void (*tensor_square)(u32* const out[3], const u32* const a[2], u64 n, const Prime& p);
  /// 2 tensor_square, and `added` to the first row.
  void (*tensor_square_doubled)(u32* const out[3], const u32* const a[2], u64 n, u32 added,
                                const Prime& p);
  void (*key_multiply)(const KeyMultiplyArgs& args, const Prime& p);
  /// The same, then permuted and added to the (full) output rows: block i of the sum goes to block
  /// target.source[i] (the inverse use of BlockPermutation).
  void (*key_multiply_scatter)(const KeyMultiplyArgs& args, const BlockPermutation& target,
                               const Prime& p);
  void (*permute)(u32* out, const u32* in, u64 n, const BlockPermutation& map);
  void (*permute_add)(u32* out, const u32* in, u64 n, const BlockPermutation& map, u32 q);
};

struct SumsTable {
  void (*baby_step)(const BabyStepArgs& args, const Prime& p);
  void (*plain_sum)(const PlainSumArgs& args, const Prime& p);
  void (*combination)(const CombinationArgs& args, const Prime& p);
};

struct NttTable {
  void (*ntt)(const NttArgs& args);
  void (*intt)(const InttArgs& args);
};

struct BasisTable {
  void (*convert)(const ConvertArgs& args);
};

struct SampleTable {
  /// Uniform residues of `blocks` ChaCha20 blocks from `first`, 4 a block; state[16] is the initial
  /// state with counter 0.
  void (*uniform)(u32* out, const u32* state, u32 first, u64 blocks, const Prime& p);
  /// The keystream itself, 16 words a block.
  void (*keystream)(u32* out, const u32* state, u32 first, u64 blocks);
};

struct IsaTable {
  const ArithmeticTable* arithmetic;
  const FusedTable* fused;
  const SumsTable* sums;
  const NttTable* ntt;
  const BasisTable* basis;
  const SampleTable* sample;
};

}  // namespace crenel::backend::cpu
