// What blind rotations by groups of secret bits share: arguments, bundles of one frequency, first
// and last words of a row.
#pragma once

#include "backends/cuda/torus/device/fft_field.cuh"

namespace crenel::backend::cuda::torus {

inline constexpr u32 kMaxBundle = 64;  ///< keys

struct BundleArgs {
  RotateArgs rotate;  ///< `out` is not used
  u32* out;
  u16* exponents;  ///< [batch][steps * keys + 1], the body's last
  u32 steps, log_keys;
  u32 log_rest_modulus;

  // ---- bundles made ahead (kernels/cluster_rotate.cuh)
  u32 rotators;          ///< blocks that rotate; those after them make bundles
  u32 first, count;      ///< steps that rotators take
  u32 next;              ///< steps after them whose bundles are made
  i32* state;            ///< [batch][polys][N]: accumulators from launch to launch
  const double2* ready;  ///< [batch][count][out][row][f]
  double2* coming;       ///< [batch][next][out][row][f]

  __host__ __device__ u32 row_exponents() const { return (steps << log_keys) + 1; }
  /// Points of the keys of a step.
  __host__ __device__ u64 step_points() const {
    return u64(rotate.polys * rotate.polys) << (log_keys + rotate.log_points);
  }
};

/// sum + a b, as device/torus/kernels.h has it.
__device__ __forceinline__ void add_product(double2& sum, double2 a, double2 b) {
  sum.x = fma_rn(-a.y, b.y, fma_rn(a.x, b.x, sum.x));
  sum.y = fma_rn(a.y, b.x, fma_rn(a.x, b.y, sum.y));
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

/// Coefficient m of the accumulator's polynomial `poly` before the first step.
template <class Rules>
__device__ __forceinline__ i32 first_word(const RotateArgs& r, const Rules& rules, u32 table,
                                          u32 turn, u32 poly, u32 m) {
  if (poly < r.glwe_dim) return 0;
  const u32 n = 1u << r.log_n, from = (m + turn) & (2 * n - 1);
  const u64 v = r.luts[u64(table) * n + (from & (n - 1))];
  return rules.centred(from < n || v == 0 ? v : r.modulus - v);
}

/// Word j of the part of output `output` that polynomial `acc` gives: of a mask n of them, of the
/// body one.
template <class Rules>
__device__ __forceinline__ u32 rest_word(const BundleArgs& args, const Rules& rules, u32 table,
                                         const i32* acc, bool body, u32 output, u32 j) {
  const RotateArgs& r = args.rotate;
  const u32 n = 1u << r.log_n, at = output * (n / r.outputs);
  u64 x = rules.canonical(acc[(at - j) & (n - 1)]);
  if (body) {
    x += r.offsets[table];
    if (x >= r.modulus) x -= r.modulus;
  } else if (j > at && x != 0) {
    x = r.modulus - x;
  }
  // Q is a power of two: floor((x q + Q / 2) / Q)
  const u32 drop = r.log_modulus - args.log_rest_modulus;
  const u64 rounded = drop == 0 ? x : (x + (u64(1) << (drop - 1))) >> drop;
  return static_cast<u32>(rounded & ((u64(1) << args.log_rest_modulus) - 1));
}

}  // namespace crenel::backend::cuda::torus
