// Tensor, key multiplication and automorphism on rows. Included by fused_<isa>.cpp after a vec_*.h.
#pragma once

#include "backends/cpu/poly/modular_impl.h"

namespace crenel::backend::cpu {
inline namespace CRENEL_CPU_ISA {

inline void tensor_rows(u32* const out[3], const u32* const a[2], const u32* const b[2], u64 n,
                        const Prime& p) {
  const Reducer m(p);
  for (u64 i = 0; i < n; i += Vec::kLanes) {
    const V a0 = Vec::load(a[0] + i), a1 = Vec::load(a[1] + i);
    const V b0 = Vec::load(b[0] + i), b1 = Vec::load(b[1] + i);
    // two products of canonical residues: 2 q^2 < q * 2^32
    const auto cross = Vec::wide_add(Vec::wide_mul(a0, b1), Vec::wide_mul(a1, b0));
    Vec::store(out[0] + i, m.mul(a0, b0));
    Vec::store(out[1] + i, m.reduce(cross));
    Vec::store(out[2] + i, m.mul(a1, b1));
  }
}

inline void tensor_square_rows(u32* const out[3], const u32* const a[2], u64 n, const Prime& p) {
  const Reducer m(p);
  for (u64 i = 0; i < n; i += Vec::kLanes) {
    const V a0 = Vec::load(a[0] + i), a1 = Vec::load(a[1] + i);
    Vec::store(out[0] + i, m.mul(a0, a0));
    // (2 a0) a1 < 2 q^2 < q * 2^32; 2 a0 < 2^32
    Vec::store(out[1] + i, m.mul(Vec::add(a0, a0), a1));
    Vec::store(out[2] + i, m.mul(a1, a1));
  }
}

inline void tensor_square_doubled_rows(u32* const out[3], const u32* const a[2], u64 n, u32 added,
                                       const Prime& p) {
  const Reducer m(p);
  const V constant = Vec::set1(added);
  for (u64 i = 0; i < n; i += Vec::kLanes) {
    const V a0 = Vec::load(a[0] + i), a1 = Vec::load(a[1] + i);
    const V x0 = m.mul(a0, a0), x1 = m.mul(Vec::add(a0, a0), a1), x2 = m.mul(a1, a1);
    Vec::store(out[0] + i, add_mod(add_mod(x0, x0, m.q), constant, m.q));
    Vec::store(out[1] + i, add_mod(x1, x1, m.q));
    Vec::store(out[2] + i, add_mod(x2, x2, m.q));
  }
}

// sum_d digit_d key_(d,c) at element i. Accumulators stay below q * 2^32: two products add at most
// 2 q^2 < q * 2^32, then one fold.
inline void multiply_digits(const KeyMultiplyArgs& args, const Reducer& m, u64 i, V& s0, V& s1) {
  const u32 count = args.count;
  Vec::Wide acc0 = Vec::wide_set1(0), acc1 = acc0;
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
  if (d < count) {
    const V x = Vec::load(args.digits[d] + i);
    acc0 = m.fold_wide(Vec::wide_add(acc0, Vec::wide_mul(x, Vec::load(args.key0[d] + i))));
    acc1 = m.fold_wide(Vec::wide_add(acc1, Vec::wide_mul(x, Vec::load(args.key1[d] + i))));
  }
  s0 = m.reduce(acc0);
  s1 = m.reduce(acc1);
}

inline void key_multiply_rows(const KeyMultiplyArgs& args, const Prime& p) {
  const Reducer m(p);
  for (u64 i = 0; i < args.n; i += Vec::kLanes) {
    V s0, s1;
    multiply_digits(args, m, i, s0, s1);
    Vec::store(args.out0 + i, s0);
    Vec::store(args.out1 + i, s1);
  }
}

inline void key_multiply_scatter_rows(const KeyMultiplyArgs& args, const BlockPermutation& target,
                                      const Prime& p) {
  const Reducer m(p);
  const VShoup lift = broadcast(args.lift);
  for (u64 i = 0, block = 0; i < args.n; i += Vec::kLanes, ++block) {
    V s0, s1;
    multiply_digits(args, m, i, s0, s1);
    if (args.lifted) s0 = add_mod(s0, mul_shoup(Vec::load(args.lifted + i), lift, m.q), m.q);
    const u64 to = static_cast<u64>(target.source[block]) * Vec::kLanes;
    const u32* pattern = target.pattern[target.shift[block]];
    u32* out0 = args.out0 + to;
    u32* out1 = args.out1 + to;
    Vec::store(out0, add_mod(Vec::load(out0), Vec::permute(s0, pattern), m.q));
    Vec::store(out1, add_mod(Vec::load(out1), Vec::permute(s1, pattern), m.q));
  }
}

inline void permute_row(u32* out, const u32* in, u64 n, const BlockPermutation& map) {
  for (u64 i = 0, block = 0; i < n; i += Vec::kLanes, ++block) {
    const V x = Vec::load(in + static_cast<u64>(map.source[block]) * Vec::kLanes);
    Vec::store(out + i, Vec::permute(x, map.pattern[map.shift[block]]));
  }
}

inline void permute_add_row(u32* out, const u32* in, u64 n, const BlockPermutation& map, u32 q) {
  const V vq = Vec::set1(q);
  for (u64 i = 0, block = 0; i < n; i += Vec::kLanes, ++block) {
    const V x = Vec::load(in + static_cast<u64>(map.source[block]) * Vec::kLanes);
    const V y = Vec::permute(x, map.pattern[map.shift[block]]);
    Vec::store(out + i, add_mod(Vec::load(out + i), y, vq));
  }
}

inline constexpr FusedTable kFused = {Vec::kLanes,        tensor_rows,
                                      tensor_square_rows, tensor_square_doubled_rows,
                                      key_multiply_rows,  key_multiply_scatter_rows,
                                      permute_row,        permute_add_row};

}  // namespace CRENEL_CPU_ISA
}  // namespace crenel::backend::cpu
