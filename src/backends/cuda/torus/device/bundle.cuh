// What blind rotations by groups of secret bits share: arguments, bundles of one frequency, first
// and last words of a row.
#pragma once

#include "backends/cuda/torus/device/fft_field.cuh"

namespace crenel::backend::cuda::torus {

inline constexpr u32 kMaxBundle = 64;  ///< keys

struct BundleArgs {
  RotateArgs rotate;  ///< `out` is not used
  u32* out;
  u16* exponents;  ///< [batch][steps * 2^log_keys + slots], the bodies' last
  u32 steps, log_keys;
  u32 first_set;  ///< device::TorusPlan's: 1 where steps add differences
  u32 log_rest_modulus;

  // ---- bundles made ahead (kernels/cluster_rotate.cuh)
  u32 rotators;          ///< blocks that rotate; those after them make bundles
  u32 first, count;      ///< steps that rotators take
  u32 next;              ///< steps after them whose bundles are made
  i32* state;            ///< [batch][polys][N]: accumulators from launch to launch
  const double2* ready;  ///< [batch][count][out][row][f]
  double2* coming;       ///< [batch][next][out][row][f]

  __host__ __device__ u32 row_exponents() const { return (steps << log_keys) + rotate.slots; }
  /// Points of the keys of a step.
  __host__ __device__ u64 step_points() const {
    return u64((1u << log_keys) - first_set) * rotate.polys * rotate.polys << rotate.log_points;
  }
};

/// sum + a b, as device/torus/kernels.h has it.
__device__ __forceinline__ void add_product(double2& sum, double2 a, double2 b) {
  sum.x = fma_rn(-a.y, b.y, fma_rn(a.x, b.x, sum.x));
  sum.y = fma_rn(a.y, b.x, fma_rn(a.x, b.y, sum.y));
}

/// (X^c - 1) applied to a sum of products: u = (cos - 1, sin).
__device__ __forceinline__ double2 difference(double2 u, double2 a) {
  return make_double2(fma_rn(u.x, a.x, -__dmul_rn(u.y, a.y)),
                      fma_rn(u.x, a.y, __dmul_rn(u.y, a.x)));
}

/// Bundles of one frequency for Outs outputs of Rows ciphertexts: a word of the key is read once
/// for all of them, a root once for all outputs. `key`: of this frequency, set 0, row 0, the first
/// output; `exponent_at(r, set)`: of ciphertext r; `point`: the exponent of the frequency's root.
template <u32 Polys, u32 Outs, u32 Rows, class Field, class ExponentAt>
__device__ __forceinline__ void make_bundles(const Field& field, u32 keys, u32 lp,
                                             const double2* key, u32 point,
                                             const ExponentAt& exponent_at,
                                             double2 (&bundle)[Rows][Polys][Outs]) {
  double2 word[Polys][Outs];
  const auto fetch = [&](u32 set) {
#pragma unroll
    for (u32 row = 0; row < Polys; ++row)
#pragma unroll
      for (u32 out = 0; out < Outs; ++out)
        word[row][out] = key[u64((set * Polys + row) * Polys + out) << lp];
  };
  fetch(0);
#pragma unroll
  for (u32 r = 0; r < Rows; ++r)
#pragma unroll
    for (u32 row = 0; row < Polys; ++row)
#pragma unroll
      for (u32 out = 0; out < Outs; ++out) bundle[r][row][out] = word[row][out];
  for (u32 set = 1; set < keys; ++set) {
    fetch(set);
#pragma unroll
    for (u32 r = 0; r < Rows; ++r) {
      const double2 root = field.root(exponent_at(r, set), point);
#pragma unroll
      for (u32 row = 0; row < Polys; ++row)
#pragma unroll
        for (u32 out = 0; out < Outs; ++out) add_product(bundle[r][row][out], root, word[row][out]);
    }
  }
}

/// The table of a message.
__device__ __forceinline__ u32 table_of(const RotateArgs& r, u32 row, u32 slot) {
  return r.index == nullptr ? 0 : r.index[u64(row) * r.slots + slot];
}

/// Coefficient m of the accumulator's polynomial `poly` before the first step.
template <class Rules>
__device__ __forceinline__ i32 first_word(const BundleArgs& args, const Rules& rules, u32 row,
                                          u32 poly, u32 m) {
  const RotateArgs& r = args.rotate;
  if (poly < r.glwe_dim) return 0;
  const u32 slot = poly - r.glwe_dim, words = args.row_exponents();
  const u32 turn = args.exponents[u64(row) * words + words - r.slots + slot];
  const u32 n = 1u << r.log_n, from = (m + turn) & (2 * n - 1);
  const u64 v = r.luts[u64(table_of(r, row, slot)) * n + (from & (n - 1))];
  return rules.centred(from < n || v == 0 ? v : r.modulus - v);
}

/// Word j of the part of output `output` of a row that polynomial `poly`, `acc`, gives: of a mask n
/// of them, of a body one.
template <class Rules>
__device__ __forceinline__ u32 rest_word(const BundleArgs& args, const Rules& rules, u32 row,
                                         u32 poly, const i32* acc, u32 output, u32 j) {
  const RotateArgs& r = args.rotate;
  const u32 n = 1u << r.log_n, at = output * (n / r.outputs);
  u64 x = rules.canonical(acc[(at - j) & (n - 1)]);
  if (poly >= r.glwe_dim) {
    x += r.offsets[table_of(r, row, poly - r.glwe_dim)];
    if (x >= r.modulus) x -= r.modulus;
  } else if (j > at && x != 0) {
    x = r.modulus - x;
  }
  // Q is a power of two: floor((x q + Q / 2) / Q)
  const u32 drop = r.log_modulus - args.log_rest_modulus;
  const u64 rounded = drop == 0 ? x : (x + (u64(1) << (drop - 1))) >> drop;
  return static_cast<u32>(rounded & ((u64(1) << args.log_rest_modulus) - 1));
}

/// The rows at rest that a block gives: `count` of them from `first` on, whose polynomials lie at
/// acc(member, poly).
template <class Rules, class AccOf>
__device__ __forceinline__ void write_rows(const BundleArgs& args, const Rules& rules, u32 first,
                                           u32 count, const AccOf& acc) {
  const RotateArgs& r = args.rotate;
  const u32 n = 1u << r.log_n, masks = r.glwe_dim * n, words = masks + r.slots;
  const u32 each = r.outputs * words;
  for (u32 t = threadIdx.x; t < count * each; t += blockDim.x) {
    const u32 member = t / each, output = t % each / words, w = t % words, row = first + member;
    if (row >= r.batch) break;
    const u32 poly = w < masks ? w / n : r.glwe_dim + w - masks, j = w < masks ? w & (n - 1) : 0;
    args.out[u64(row) * each + t % each] =
        rest_word(args, rules, row, poly, acc(member, poly), output, j);
  }
}

}  // namespace crenel::backend::cuda::torus
