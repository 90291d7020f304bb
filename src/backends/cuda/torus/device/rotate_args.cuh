// Arguments of the blind rotation and what both fields share: the accumulator's integers.
#pragma once

#include "backends/cuda/modular.cuh"

namespace crenel::backend::cuda::torus {

inline constexpr u32 kMaxPrimes = 2;
/// Twiddles of the pass of depth 0: at most four levels.
inline constexpr u32 kFirstComplex = 8, kFirstPairs = 15;

/// Constants of one prime of the exact path.
struct TorusPrime {
  u32 q, q_inv;  ///< q^-1 mod 2^32
  u32 r;         ///< 2^32 mod q
  Pair scale;    ///< N^-1 (product / q)^-1 mod q: ends an inverse transform
};

struct RotateArgs {
  u64* out;
  const u32* in;
  const void* key;
  const u64* luts;
  const u64* offsets;
  const u32* index;  ///< may be null
  u8* spill;         ///< memory of the points where they do not fit on chip, else null
  u32 batch;
  u32 group;     ///< rows at rest a block
  u32 outputs;   ///< extracted rows of each
  u32 log_tile;  ///< log2 of the points that the block multiplies at a time
  u32 lwe_dim, glwe_dim, slots, polys;
  u32 log_n, log_points;
  u32 log_lwe_modulus;
  u32 log_switch_modulus;
  u32 digits, base_log;
  u32 operands;   ///< of products, a polynomial: digits or their pieces
  u32 piece_log;  ///< split: log2 of the weight of the digits' upper pieces
  u32 ternary;
  u32 log_modulus;  ///< raising: log2 Q
  u64 modulus;      ///< Q
  u64 key_modulus;  ///< Q or T
  i64 carry;        ///< gadget: sum of the halves of the digits below the last

  // double-precision transform
  const double2* twiddles;  ///< in pass order
  u32 twiddle_count;
  double2 first[kFirstComplex];  ///< those of depth 0
  const double* cosines;         ///< cos(pi j / N), j = 0 .. N/2
  double scale;                  ///< raising: Q / T / M; gadget: 1 / M
  double q, q_inverse;           ///< Q and 1 / Q
  u32 reduces;                   ///< device::reduces_product

  // exact transform
  TorusPrime prime[kMaxPrimes];
  const Pair* forward[kMaxPrimes];  ///< twiddles in pass order
  const Pair* inverse[kMaxPrimes];
  Pair first_forward[kMaxPrimes][kFirstPairs], first_inverse[kMaxPrimes][kFirstPairs];
  /// Entry brev(j), j < N: for each prime c = (psi^j + psi^-j) / 2 and s = (psi^j - psi^-j) / 2
  /// (ternary), or psi^j and 0, in Montgomery form.
  const u32* turns;
  u32 folds;         ///< sums may reach q 2^32
  double key_ratio;  ///< Q / T
};

/// What the accumulator holds: centred residues modulo Q, words of 32 or 64 bits. Operand: the word
/// that digits fit. Pieces: that a digit is multiplied in. Wide: doubles before the last rounding
/// may reach 2^51, where the bits of a sum with 1.5 * 2^52 no longer show the integer.
template <bool Raising_, class Acc_, class Operand_ = i32, u32 Pieces_ = 1>
struct Accumulator {
  static constexpr bool Raising = Raising_;
  static constexpr u32 Pieces = Pieces_;
  static constexpr bool Wide = sizeof(Operand_) == 8 || Pieces == 2;
  using Acc = Acc_;
  using Operand = Operand_;
  /// Operands of a polynomial where that is a constant, else 0.
  static constexpr u32 kOperands = Raising ? 1 : Pieces == 2 && sizeof(Operand) == 4 ? 2 : 0;
  const RotateArgs& args;

  /// Operand d of c: a digit, or a piece of one, lower ones first.
  __device__ __forceinline__ Operand operand(Acc c, u32 d) const {
    if constexpr (Pieces == 1) {
      return digit(c, d);
    } else {
      const Operand half = Operand(1) << (args.piece_log - 1);
      const Operand x = digit(c, d / 2) + half;
      return d % 2 == 0 ? (x & (2 * half - 1)) - half : x >> args.piece_log;
    }
  }
  __device__ __forceinline__ Operand digit(Acc c, u32 d) const {
    if constexpr (Raising) return static_cast<Operand>(c);
    const Acc t = c + static_cast<Acc>(args.carry);
    if (d + 1 == args.digits) return static_cast<Operand>(t >> (args.base_log * args.digits));
    const Operand base = Operand(1) << args.base_log;
    return (static_cast<Operand>(t >> (args.base_log * (d + 1))) & (base - 1)) - base / 2;
  }
  /// c + delta, centred. Gadget: |delta| <= Q.
  __device__ __forceinline__ Acc add(Acc c, Acc delta) const {
    if constexpr (Raising) {
      const u32 unused = 8 * sizeof(Acc) - args.log_modulus;
      const u64 sum = static_cast<u64>(c) + static_cast<u64>(delta);
      return static_cast<Acc>(static_cast<Acc>(sum << unused) >> unused);
    } else {
      const Acc q = static_cast<Acc>(args.modulus), half = q / 2;
      const Acc s = c + delta;
      return s > half ? s - q : s < -half ? s + q : s;
    }
  }
  __device__ __forceinline__ Acc centred(u64 x) const {
    return static_cast<Acc>(static_cast<i64>(x > (args.modulus - 1) / 2 ? x - args.modulus : x));
  }
  __device__ __forceinline__ u64 canonical(Acc c) const {
    return static_cast<u64>(static_cast<i64>(c)) + (c < 0 ? args.modulus : 0);
  }
};

}  // namespace crenel::backend::cuda::torus
