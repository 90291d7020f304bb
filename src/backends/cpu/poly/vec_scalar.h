// The vector interface of the kernels, in its portable one-lane form; also its documentation.
#pragma once

#include "backends/cpu/poly/isa_table.h"

#define CRENEL_CPU_ISA scalar

namespace crenel::backend::cpu {
inline namespace CRENEL_CPU_ISA {

struct Vec {
  using V = u32;
  static constexpr u32 kLanes = 1;
  static constexpr u32 kLogLanes = 0;
  static constexpr int kMaxRadixLog = 2;  ///< largest radix whose data stays in registers

  static V load(const u32* p) { return *p; }
  static void store(u32* p, V x) { *p = x; }
  /// Lane j is p[j >> shift], 2^shift <= kLanes; no word beyond those is touched.
  static V load_repeated(const u32* p, u32) { return *p; }
  static V set1(u32 x) { return x; }
  static V zero() { return 0; }
  static V add(V a, V b) { return a + b; }
  static V sub(V a, V b) { return a - b; }
  static V min(V a, V b) { return a < b ? a : b; }
  static V bit_and(V a, V b) { return a & b; }
  static V bit_xor(V a, V b) { return a ^ b; }
  /// All ones where the top bit is set.
  static V sign_mask(V a) { return 0u - (a >> 31); }
  template <int bits>
  static V rotate_left(V a) {
    return (a << bits) | (a >> (32 - bits));
  }
  static V mul_lo(V a, V b) { return a * b; }
  /// floor(a * b / 2^32).
  static V mul_hi(V a, V b) { return static_cast<u32>((static_cast<u64>(a) * b) >> 32); }
  /// The same for a b whose lanes 2i and 2i + 1 are equal.
  static V mul_hi_dup(V a, V b) { return mul_hi(a, b); }

  /// One 64-bit number a lane; vector paths keep even and odd lanes in two registers.
  using Wide = u64;
  static Wide wide_set1(u64 x) { return x; }
  static Wide wide_mul(V a, V b) { return static_cast<u64>(a) * b; }
  static Wide wide_add(Wide a, Wide b) { return a + b; }
  /// A word, broadcast, as a factor of wide_mul_add.
  using Coefficient = u64;
  static Coefficient coefficient(const u64* p) { return *p; }
  /// A vector split for several wide_mul_add.
  using Pair = u32;
  static Pair pair(V a) { return a; }
  static Wide wide_mul_add(Wide acc, Pair a, Coefficient c) { return acc + a * c; }
  /// q * 2^32 as wide_fold wants it.
  static u64 set1_high(u32 q) { return static_cast<u64>(q) << 32; }
  /// Takes [0, 2 * q_high) to [0, q_high); the low words are not touched, so that a minimum of the
  /// 32-bit high words decides.
  static Wide wide_fold(Wide a, u64 q_high) {
    const Wide b = a - q_high;
    return b < a ? b : a;
  }
  /// High words.
  static V wide_high(Wide a) { return static_cast<u32>(a >> 32); }
  /// High words of the multiple m q of q with the low word of a: a - m q = (wide_high(a) -
  /// wide_quotient(a)) * 2^32, which is Montgomery reduction.
  static V wide_quotient(Wide a, V q, V q_inv) { return mul_hi(static_cast<u32>(a) * q_inv, q); }

  /// The stages of the NTT inside vectors, on the 2 * kLanes consecutive elements of (x, y).
  /// split<t>, t = kLanes/2 ... 1, brings partners of stage t (indices differing in bit t) to the
  /// same lane of x and y, after the split of 2t; join restores the order after stage 1. Backwards:
  /// unjoin, and merge<t> after stage t. Lane orders in between are the path's own; load_twiddles
  /// knows them.
  template <u32 t>
  static void split(V&, V&) {}
  template <u32 t>
  static void merge(V&, V&) {}
  static void join(V&, V&) {}
  static void unjoin(V&, V&) {}
  /// The twiddles of stage t: block k of 2t elements, k < kLanes / t, uses p[k].
  template <u32 t, bool inverse>
  static void load_twiddles(const Shoup* p, V& w, V& wq) {
    w = p->value, wq = p->quotient;
  }
  static void load_wide(const i64* p, V& low, V& high) {
    low = static_cast<u32>(*p);
    high = static_cast<u32>(static_cast<u64>(*p) >> 32);
  }
  /// Lane j is lane pattern[j] of x.
  static V permute(V x, const u32*) { return x; }
  static V lane_numbers() { return 0; }
};

}  // namespace CRENEL_CPU_ISA
}  // namespace crenel::backend::cpu
