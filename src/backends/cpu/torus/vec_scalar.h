// The vectors of doubles of the torus kernels, in their portable one-lane form; also their
// documentation. Fused operations round once; nothing else is contracted.
#pragma once

#include "backends/cpu/torus/table.h"

#define CRENEL_CPU_TORUS_ISA torus_scalar

namespace crenel::backend::cpu {
inline namespace CRENEL_CPU_TORUS_ISA {

struct Real {
  using D = double;
  using I = i64;
  static constexpr u32 kLanes = 1;
  static constexpr u32 kLogLanes = 0;
  static constexpr int kMaxStages = 2;  ///< levels of a pass whose data stays in registers
  static constexpr u32 kMaxRows = 2;    ///< rows whose sums stay in registers

  static D load(const double* p) { return *p; }
  static void store(double* p, D x) { *p = x; }
  static D set1(double x) { return x; }
  static D add(D a, D b) { return a + b; }
  static D sub(D a, D b) { return a - b; }
  static D mul(D a, D b) { return a * b; }
  /// a b + c and c - a b, rounded once.
  static D fma(D a, D b, D c) { return __builtin_fma(a, b, c); }
  static D fnma(D a, D b, D c) { return __builtin_fma(-a, b, c); }
  /// a b - c and -(a b) - c, rounded once.
  static D fms(D a, D b, D c) { return __builtin_fma(a, b, -c); }
  static D fnms(D a, D b, D c) { return __builtin_fma(-a, b, -c); }
  /// Lane k from table[index_k].
  static D gather(const double* table, const u32* index, u32 add, u32 factor, u32 mask) {
    return table[(*index * factor + add) & mask];
  }
  /// kLanes x kLanes, in place.
  static void transpose(D*) {}

  static I load(const i64* p) { return *p; }
  static void store(i64* p, I x) { *p = x; }
  static I set1(i64 x) { return x; }
  /// Sums wrap modulo 2^64.
  static I add(I a, I b) { return static_cast<i64>(static_cast<u64>(a) + static_cast<u64>(b)); }
  static I sub(I a, I b) { return static_cast<i64>(static_cast<u64>(a) - static_cast<u64>(b)); }
  static I bit_and(I a, I b) { return a & b; }
  static I bit_xor(I a, I b) { return a ^ b; }
  /// x / 2^bits for multiples of 2^bits, 1 <= bits.
  static I shift_right(I x, u32 bits) { return x >> bits; }
  /// All ones where a > b.
  static I greater(I a, I b) { return a > b ? -1 : 0; }
  /// Nearest double.
  static D to_double(I x) { return static_cast<double>(x); }
  /// x without its fraction, |x| < 2^60.
  static I to_integer(D x) { return static_cast<i64>(x); }
  static I bits(D x) { return __builtin_bit_cast(i64, x); }
  static D flip_sign(D x, D sign) { return __builtin_bit_cast(double, bits(x) ^ bits(sign)); }
};

}  // namespace CRENEL_CPU_TORUS_ISA
}  // namespace crenel::backend::cpu
