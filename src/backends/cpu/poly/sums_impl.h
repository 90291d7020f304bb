// Baby steps, plaintext sums and linear combinations on rows. Included by sums_<isa>.cpp after a
// vec_*.h.
#pragma once

#include "backends/cpu/poly/modular_impl.h"

namespace crenel::backend::cpu {
inline namespace CRENEL_CPU_ISA {

// Products of residues that may be added to an accumulator below q * 2^32 before it must be folded:
// t with t q^2 <= q * 2^32, at least 2.
inline u32 terms_a_fold(u32 q) { return static_cast<u32>((static_cast<u64>(1) << 32) / q); }

// Words between those of a key that are multiplied and those that are fetched: what memory takes to
// answer. Rows of a task are too short for the processor to see by itself what comes next.
inline constexpr u64 kKeyAhead = 256;

inline void baby_step_rows(const BabyStepArgs& args, const Prime& p) {
  const Reducer m(p);
  const V lift = Vec::set1(args.lift);
  const u32 count = args.count;
  for (u64 i = 0, block = 0; i < args.n; i += Vec::kLanes, ++block) {
    Vec::Wide acc0 = Vec::wide_set1(0), acc1 = acc0;
    // Not a function of its own: compilers take one that does nothing else for one without effect.
    const bool own = i + kKeyAhead < args.n;
    const u32* const* const fetch0 = own ? args.key0 : args.next0;
    const u32* const* const fetch1 = own ? args.key1 : args.next1;
    const u64 at = own ? i + kKeyAhead : i + kKeyAhead - args.n;
    for (u32 k = 0; k < (own ? count : args.next_count); ++k) {
      __builtin_prefetch(fetch0[k] + at, 0, 3);
      __builtin_prefetch(fetch1[k] + at, 0, 3);
    }
    u32 d = 0;
    for (; d + 2 <= count; d += 2) {
      const V x = Vec::load(args.digits[d] + i), y = Vec::load(args.digits[d + 1] + i);
      const auto t0 = Vec::wide_add(Vec::wide_mul(x, Vec::load(args.key0[d] + i)),
                                    Vec::wide_mul(y, Vec::load(args.key0[d + 1] + i)));
      const auto t1 = Vec::wide_add(Vec::wide_mul(x, Vec::load(args.key1[d] + i)),
                                    Vec::wide_mul(y, Vec::load(args.key1[d + 1] + i)));
      acc0 = m.fold_wide(Vec::wide_add(acc0, t0));
      acc1 = m.fold_wide(Vec::wide_add(acc1, t1));
    }
    // at most one more digit and the lift: two products, as above
    if (d < count) {
      const V x = Vec::load(args.digits[d] + i);
      acc0 = Vec::wide_add(acc0, Vec::wide_mul(x, Vec::load(args.key0[d] + i)));
      acc1 = Vec::wide_add(acc1, Vec::wide_mul(x, Vec::load(args.key1[d] + i)));
    }
    if (args.lifted0) acc0 = Vec::wide_add(acc0, Vec::wide_mul(Vec::load(args.lifted0 + i), lift));
    if (args.lifted1) acc1 = Vec::wide_add(acc1, Vec::wide_mul(Vec::load(args.lifted1 + i), lift));
    const u64 to = static_cast<u64>(args.target.source[block] - args.first_target) * Vec::kLanes;
    const u32* pattern = args.target.pattern[args.target.shift[block]];
    Vec::store(args.out0 + to, Vec::permute(m.montgomery(m.fold_wide(acc0)), pattern));
    Vec::store(args.out1 + to, Vec::permute(m.montgomery(m.fold_wide(acc1)), pattern));
  }
}

// How element i finds its plaintext word: one word an element, a word for a few lanes, a word for
// whole vectors.
enum class Words { one, few, whole };

template <Words kind>
inline V load_words(const u32* words, u64 i, u32 shift) {
  if constexpr (kind == Words::one) return Vec::load(words + i);
  if constexpr (kind == Words::few) return Vec::load_repeated(words + (i >> shift), shift);
  return Vec::set1(words[i >> shift]);
}

// Elements of one tile: the baby steps stay in L1 while the giant steps go over them. Plaintexts of
// the next tile are fetched meanwhile: their rows are too many and too short for the processor to
// see what comes next.
inline constexpr u64 kPlainTile = 256;

// The giant steps [first, first + giants), which share the loads of the baby steps.
template <int components, Words kind, int giants>
inline void plain_sum_tile(const PlainSumArgs& args, const Reducer& m, u32 first, u32 terms,
                           u64 begin, u64 end) {
  const VShoup scale = broadcast(args.scale);
  const u32* const* plain = args.plain + static_cast<u64>(first) * args.babies;
  u32* const* out = args.out + static_cast<u64>(first) * components;
  for (u64 i = begin; i < end; i += Vec::kLanes) {
    Vec::Wide acc[giants][components];
    for (int g = 0; g < giants; ++g)
      for (int c = 0; c < components; ++c) acc[g][c] = Vec::wide_set1(0);
    u32 left = terms;
    for (u32 b = 0; b < args.babies; ++b) {
      const u32* const* in = args.in + static_cast<u64>(b) * components;
      V x[components];
      for (int c = 0; c < components; ++c) x[c] = Vec::load(in[c] + i);
      for (int g = 0; g < giants; ++g) {
        const u32* words = plain[static_cast<u64>(g) * args.babies + b];
        V w = Vec::zero();
        if (words) {
          w = load_words<kind>(words, i, args.shift);
          __builtin_prefetch(words + ((i + kPlainTile) >> args.shift), 0, 2);
        }
        for (int c = 0; c < components; ++c)
          acc[g][c] = Vec::wide_add(acc[g][c], Vec::wide_mul(w, x[c]));
      }
      if (--left == 0) {
        for (int g = 0; g < giants; ++g)
          for (int c = 0; c < components; ++c) acc[g][c] = m.fold_wide(acc[g][c]);
        left = terms;
      }
    }
    for (int g = 0; g < giants; ++g)
      for (int c = 0; c < components; ++c)
        Vec::store(out[g * components + c] + i,
                   mul_shoup(m.montgomery(m.fold_wide(acc[g][c])), scale, m.q));
  }
}

template <int components, Words kind>
inline void plain_sum_all(const PlainSumArgs& args, const Prime& p) {
  const Reducer m(p);
  const u32 terms = terms_a_fold(p.q);
  for (u64 begin = 0; begin < args.n; begin += kPlainTile) {
    const u64 end = begin + kPlainTile < args.n ? begin + kPlainTile : args.n;
    u32 g = 0;
    for (; g + 4 <= args.giants; g += 4)
      plain_sum_tile<components, kind, 4>(args, m, g, terms, begin, end);
    for (; g + 2 <= args.giants; g += 2)
      plain_sum_tile<components, kind, 2>(args, m, g, terms, begin, end);
    if (g < args.giants) plain_sum_tile<components, kind, 1>(args, m, g, terms, begin, end);
  }
}

template <int components>
inline void plain_sum_kinds(const PlainSumArgs& args, const Prime& p) {
  if (args.shift == 0)
    plain_sum_all<components, Words::one>(args, p);
  else if (args.shift < Vec::kLogLanes)
    plain_sum_all<components, Words::few>(args, p);
  else
    plain_sum_all<components, Words::whole>(args, p);
}

inline void plain_sum_rows(const PlainSumArgs& args, const Prime& p) {
  if (args.components == 2)
    plain_sum_kinds<2>(args, p);
  else
    plain_sum_kinds<1>(args, p);
}

inline void combination_row(const CombinationArgs& args, const Prime& p) {
  const Reducer m(p);
  const u32 terms = terms_a_fold(p.q);
  for (u64 i = 0; i < args.n; i += Vec::kLanes) {
    // below q: less than what one product could add
    Vec::Wide acc = Vec::wide_set1(args.constant);
    u32 left = terms - 1;
    for (u32 k = 0; k < args.terms; ++k) {
      acc = Vec::wide_mul_add(acc, Vec::pair(Vec::load(args.in[k] + i)),
                              Vec::coefficient(args.scalars + k));
      if (--left == 0) acc = m.fold_wide(acc), left = terms;
    }
    Vec::store(args.out + i, m.reduce(m.fold_wide(acc)));
  }
}

inline constexpr SumsTable kSums = {baby_step_rows, plain_sum_rows, combination_row};

}  // namespace CRENEL_CPU_ISA
}  // namespace crenel::backend::cpu
