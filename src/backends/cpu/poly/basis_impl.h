// Base conversion. Included by basis_<isa>.cpp after a vec_*.h.
#pragma once

#include "backends/cpu/poly/modular_impl.h"

namespace crenel::backend::cpu {
inline namespace CRENEL_CPU_ISA {

// Coefficients of one tile: 12 source rows of it fill half of a 32 KiB L1.
inline constexpr u64 kConvertTile = 384;

// Words between those of a source that are converted and those that are fetched.
inline constexpr u64 kSourceAhead = 128;

// The row of quotients: a sum below 2^64, whose bits from `shift` >= 33 on are wanted.
inline void convert_quotients(const ConvertArgs& args, u64 begin, u64 end) {
  const V unit = Vec::set1(args.reciprocal_unit);
  for (u64 i = begin; i < end; i += Vec::kLanes) {
    Vec::Wide acc = Vec::wide_set1(args.reciprocal_start);
    u32* z = args.z + i;
    for (u32 j = 0; j < args.sources; ++j, z += args.z_stride)
      acc = Vec::wide_mul_add(acc, Vec::pair(Vec::load(z)), Vec::coefficient(args.reciprocal + j));
    Vec::store(z, Vec::mul_hi(Vec::wide_high(acc), unit));
  }
}

// `targets` outputs at once share the loads and shifts of the sources. The first outputs of a tile
// fetch them: rows of a tile are too short for the processor to see what comes next.
template <int targets, bool lazy, bool fetch>
inline void convert_tile(const ConvertArgs& args, u32 first, u64 begin, u64 end) {
  const ConvertTarget* target = args.target + first;
  const u32 sources = args.sources + (args.reciprocal != nullptr);
  for (u64 i = begin; i < end; i += Vec::kLanes) {
    Vec::Wide acc[targets];
#pragma GCC unroll 4
    for (int k = 0; k < targets; ++k) acc[k] = Vec::wide_set1(target[k].offset);
    const u32* z = args.z + i;
    for (u32 j = 0; j < sources; ++j, z += args.z_stride) {
      const auto x = Vec::pair(Vec::load(z));
      if constexpr (fetch) __builtin_prefetch(z + kSourceAhead, 0, 3);
#pragma GCC unroll 4
      for (int k = 0; k < targets; ++k) {
        acc[k] = Vec::wide_mul_add(acc[k], x, Vec::coefficient(target[k].matrix + j));
        // z * matrix < 2^31 p: two terms on top of p * 2^32 stay below 2 p * 2^32
        if (!lazy && (j & 1)) acc[k] = Vec::wide_fold(acc[k], Vec::set1_high(target[k].p));
      }
    }
    // Montgomery reduction gives sum * 2^-32 mod p, which is the plain residue; the high words are
    // taken below p first.
#pragma GCC unroll 4
    for (int k = 0; k < targets; ++k) {
      const V p = Vec::set1(target[k].p);
      V high = Vec::wide_high(acc[k]);
      for (u32 f = args.folds; f-- > 0;) high = fold(high, Vec::set1(target[k].fold[f]));
      const V quotient = Vec::wide_quotient(acc[k], p, Vec::set1(target[k].p_inv));
      Vec::store(args.out[first + static_cast<u32>(k)] + i, sub_mod(high, quotient, p));
    }
  }
}

template <bool lazy>
inline void convert_all(const ConvertArgs& args) {
  const u64 end = args.begin + args.count;
  for (u64 begin = args.begin; begin < end; begin += kConvertTile) {
    const u64 stop = begin + kConvertTile < end ? begin + kConvertTile : end;
    if (args.reciprocal != nullptr) convert_quotients(args, begin, stop);
    u32 i = 0;
    if (args.targets >= 4) convert_tile<4, lazy, true>(args, 0, begin, stop), i = 4;
    for (; i + 4 <= args.targets; i += 4) convert_tile<4, lazy, false>(args, i, begin, stop);
    for (; i + 2 <= args.targets; i += 2) convert_tile<2, lazy, false>(args, i, begin, stop);
    for (; i < args.targets; ++i) convert_tile<1, lazy, false>(args, i, begin, stop);
  }
}

inline void convert_rows(const ConvertArgs& args) {
  if (args.lazy)
    convert_all<true>(args);
  else
    convert_all<false>(args);
}

inline constexpr BasisTable kBasis = {convert_rows};

}  // namespace CRENEL_CPU_ISA
}  // namespace crenel::backend::cpu
