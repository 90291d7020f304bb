// Bootstrapping keys into the order and domain of the blind rotation:
// [element][operand][row][c][out][f].
#pragma once

#include "backends/cuda/torus/device/fft_field.cuh"
#include "backends/cuda/torus/device/ntt_field.cuh"
#include "backends/cuda/torus/device/passes.cuh"

namespace crenel::backend::cuda::torus {

inline constexpr u32 kLoadThreads = 256;

struct LoadArgs {
  RotateArgs tables;  ///< twiddles in tree order: passes of one level
  const i64* polys;   ///< [count][key][digit][row][out][N]
  void* key;          ///< of the first element
};

/// Where block (x = out + polys * row, y = operand, z = element) reads key c.
__device__ __forceinline__ const i64* source_poly(const LoadArgs& args, u32 c) {
  const RotateArgs& t = args.tables;
  const u64 keys = t.ternary ? 2 : 1, square = u64(t.polys) * t.polys;
  const u32 pieces = t.operands / t.digits;
  return args.polys +
         ((((u64(blockIdx.z) * keys + c) * t.digits + blockIdx.y / pieces) * square + blockIdx.x)
          << t.log_n);
}

/// What the block's operand multiplies, for a digit whose key is `key`.
__device__ __forceinline__ i64 weighted(const RotateArgs& t, i64 key) {
  if (t.operands == t.digits || blockIdx.y % 2 == 0) return key;
  const i64 q = static_cast<i64>(t.modulus);
  const i64 r = static_cast<i64>(static_cast<__int128>(key) * (i64(1) << t.piece_log) % q);
  return 2 * r > q ? r - q : 2 * r < -q ? r + q : r;
}

/// Coefficient j of what is transformed: K0 + K1 and K0 - K1 for ternary secrets, K0 for binary.
__device__ __forceinline__ i64 key_value(const LoadArgs& args, u32 c, u32 j) {
  const i64 k0 = weighted(args.tables, source_poly(args, 0)[j]);
  if (!args.tables.ternary) return k0;
  const i64 k1 = weighted(args.tables, source_poly(args, 1)[j]);
  return c == 0 ? k0 + k1 : k0 - k1;
}

/// Where the block writes variant c.
template <class Key>
__device__ __forceinline__ Key* target_points(const LoadArgs& args, u32 c) {
  const RotateArgs& t = args.tables;
  const u64 keys = t.ternary ? 2 : 1;
  const u32 row = blockIdx.x / t.polys, out = blockIdx.x % t.polys;
  const u64 index =
      (((u64(blockIdx.z) * t.operands + blockIdx.y) * t.polys + row) * keys + c) * t.polys + out;
  return static_cast<Key*>(args.key) + (index << t.log_points);
}

template <class Key>
__device__ __forceinline__ void write_points(const LoadArgs& args, u32 c, const Key* work) {
  Key* const to = target_points<Key>(args, c);
  for (u32 f = threadIdx.x; f < 1u << args.tables.log_points; f += kLoadThreads)
    to[f] = work[place<Key>(f, kSingleLevels)];
  __syncthreads();
}

__global__ void __launch_bounds__(kLoadThreads)
    load_key_fft(const __grid_constant__ LoadArgs args) {
  begin_kernel();
  extern __shared__ __align__(16) double2 work[];
  const RotateArgs& t = args.tables;
  const FftPoints field{t.twiddles, t};
  const u32 half = 1u << t.log_points;
  for (u32 c = 0; c < (t.ternary ? 2u : 1u); ++c) {
    const auto value = [&](u32 j) { return __ll2double_rn(key_value(args, c, j)); };
    forward<FftPoints, 0, 1>(field, work, 1, t.log_points, [&](u32) {
      return [&](u32 e) { return make_double2(value(e), value(e + half)); };
    });
    write_points<double2>(args, c, work);
  }
}

template <u32 L>
__global__ void __launch_bounds__(kLoadThreads)
    load_key_ntt(const __grid_constant__ LoadArgs args) {
  begin_kernel();
  extern __shared__ __align__(16) u8 bytes[];
  using Element = Residues<L>;
  auto* const work = reinterpret_cast<Element*>(bytes);
  const RotateArgs& t = args.tables;
  const NttPoints<L> field{t};
  for (u32 c = 0; c < (t.ternary ? 2u : 1u); ++c) {
    forward<NttPoints<L>, 0, 1>(field, work, 1, t.log_points, [&](u32) {
      return [&](u32 e) {
        Element v;
        for (u32 l = 0; l < L; ++l) {
          const i64 q = t.prime[l].q, x = key_value(args, c, e) % q;
          v.at[l] = static_cast<u32>(x < 0 ? x + q : x);
        }
        return v;
      };
    });
    // Montgomery form
    for (u32 f = threadIdx.x; f < 1u << t.log_points; f += kLoadThreads)
      for (u32 l = 0; l < L; ++l) {
        u32& x = work[f].at[l];
        x = static_cast<u32>((u64(x) << 32) % t.prime[l].q);
      }
    __syncthreads();
    write_points<Element>(args, c, work);
  }
}

}  // namespace crenel::backend::cuda::torus
