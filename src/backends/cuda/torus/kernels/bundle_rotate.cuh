// Blind rotation by groups of secret bits: exponents first (a block a row), then start, all steps
// and extraction of a row in one block. Bundles of keys are made in registers where they are used
// and never stored.
#pragma once

#include "backends/cuda/torus/device/fft_field.cuh"
#include "backends/cuda/torus/device/passes.cuh"

namespace crenel::backend::cuda::torus {

inline constexpr u32 kMaxBundle = 64;  ///< keys
inline constexpr u32 kCutThreads = 128;

struct BundleArgs {
  RotateArgs rotate;  ///< `out` is not used
  u32* out;
  u16* exponents;  ///< [batch][steps * keys + 1], the body's last
  u32 steps, log_keys;
  u32 log_rest_modulus;

  __host__ __device__ u32 row_exponents() const { return (steps << log_keys) + 1; }
};

/// c_S of every step of a row and the body's exponent, as device/torus/kernels.h has them.
__global__ void __launch_bounds__(kCutThreads)
    cut_exponents(const __grid_constant__ BundleArgs args) {
  begin_kernel();
  const RotateArgs& r = args.rotate;
  __shared__ unsigned long long cut_off;  // of signed numbers, modulo 2^64: sums in any order
  if (threadIdx.x == 0) cut_off = 0;
  __syncthreads();
  const u32 keys = 1u << args.log_keys, log_range = r.log_switch_modulus - r.log_n - 1;
  const i64 range = i64(1) << log_range;
  const u32 modulus_mask = static_cast<u32>((u64(1) << r.log_switch_modulus) - 1);
  const u32 turn_mask = (2u << r.log_n) - 1;
  const u32* const in = r.in + u64(blockIdx.x) * (r.lwe_dim + r.slots);
  u16* const out = args.exponents + u64(blockIdx.x) * args.row_exponents();
  for (u32 step = threadIdx.x; step < args.steps; step += blockDim.x) {
    u32 x[kMaxBundle];
    x[0] = 0;
    for (u32 l = 0; l < args.log_keys; ++l) {
      const u32 a = in[step * args.log_keys + l];
      for (u32 set = 0; set < 1u << l; ++set) x[set | 1u << l] = (x[set] + a) & modulus_mask;
    }
    const auto fraction = [&](u32 set) { return i64(x[set] & (range - 1)); };
    i64 whole = 0;
    for (u32 set = 0; set < keys; ++set) whole += fraction(set);
    // see CpuTorusKernels::cut_exponents
    i64 least = 0, at = 0, taken = 0;
    for (u32 cut = 0; cut < keys; ++cut) {
      const i64 here = fraction(cut);
      i64 above = 0, sum = 0;
      for (u32 set = 0; set < keys; ++set)
        if (fraction(set) > here) above += 1, sum += fraction(set);
      const i64 total = whole - range * above;
      const i64 cost = keys * range * (range * above - 2 * sum) - total * total;
      if (cut == 0 || cost < least) least = cost, at = here, taken = total;
    }
    atomicAdd(&cut_off, static_cast<unsigned long long>(taken));
    for (u32 set = 0; set < keys; ++set)
      out[(step << args.log_keys) + set] =
          static_cast<u16>(((x[set] >> log_range) + (fraction(set) > at)) & turn_mask);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const u32 log_step = args.log_keys + log_range;
    const i64 body = (i64(in[r.lwe_dim]) << args.log_keys) - static_cast<i64>(cut_off) +
                     (i64(1) << (log_step - 1));
    out[args.steps << args.log_keys] =
        static_cast<u16>(static_cast<u32>(body >> log_step) & turn_mask);
  }
}

/// Sums of one point: Polys as a constant, a bundle for every row and output at once, so that a
/// root is read once; 0: of run time, one bundle at a time. A bundle adds in the same order.
template <u32 Polys, class Field>
__device__ __forceinline__ void bundle_point(const Field& field, const BundleArgs& args,
                                             const u16* exponents, const double2* key,
                                             double2* work, u32 f, u32 at, u32 lp) {
  const u32 keys = 1u << args.log_keys, exponent = field.exponent_of(f);
  const auto add = [](double2& sum, double2 a, double2 b) {
    sum.x = fma_rn(-a.y, b.y, fma_rn(a.x, b.x, sum.x));
    sum.y = fma_rn(a.y, b.x, fma_rn(a.x, b.y, sum.y));
  };
  if constexpr (Polys != 0) {
    double2 bundle[Polys * Polys];
#pragma unroll
    for (u32 i = 0; i < Polys * Polys; ++i) bundle[i] = key[(i << lp) + f];
    for (u32 set = 1; set < keys; ++set) {
      const double2 root = field.root(exponents[set], exponent);
      const double2* const next = key + (u64(set * Polys * Polys) << lp) + f;
#pragma unroll
      for (u32 i = 0; i < Polys * Polys; ++i) add(bundle[i], root, next[i << lp]);
    }
    double2 sum[Polys];
#pragma unroll
    for (u32 out = 0; out < Polys; ++out) sum[out] = make_double2(0.0, 0.0);
#pragma unroll
    for (u32 row = 0; row < Polys; ++row) {
      const double2 in = work[(row << lp) + at];
#pragma unroll
      for (u32 out = 0; out < Polys; ++out) add(sum[out], in, bundle[row * Polys + out]);
    }
#pragma unroll
    for (u32 out = 0; out < Polys; ++out) work[(out << lp) + at] = sum[out];
  } else {
    constexpr u32 kMostPolys = 17;  // 16 masks and a body
    const u32 polys = args.rotate.polys;
    double2 sum[kMostPolys];
    for (u32 out = 0; out < polys; ++out) {
      sum[out] = make_double2(0.0, 0.0);
      for (u32 row = 0; row < polys; ++row) {
        const double2* const k = key + ((row * polys + out) << lp) + f;
        double2 bundle = k[0];
        for (u32 set = 1; set < keys; ++set)
          add(bundle, field.root(exponents[set], exponent), k[u64(set * polys * polys) << lp]);
        add(sum[out], work[(row << lp) + at], bundle);
      }
    }
    for (u32 out = 0; out < polys; ++out) work[(out << lp) + at] = sum[out];
  }
}

/// LP: log2 of the points (0: of run time); Polys: of the accumulator (0: of run time).
template <u32 LP, u32 RMax, u32 Polys, u32 Threads>
__global__ void __launch_bounds__(Threads) bundle_rotate(const __grid_constant__ BundleArgs args) {
  begin_kernel();
  using Rules = Accumulator<true, i32>;
  using Field = FftField<Rules, LP>;
  extern __shared__ __align__(16) u8 shared[];
  const RotateArgs& r = args.rotate;
  const u32 lp = LP != 0 ? LP : r.log_points, n = 2u << lp;
  constexpr Swizzle swizzle = LP != 0 ? PassPlan(LP != 0 ? LP : 1, RMax).swizzle() : kSingleLevels;
  const u32 polys = Polys != 0 ? Polys : r.polys;
  double2* const work = reinterpret_cast<double2*>(shared);
  i32* const acc = reinterpret_cast<i32*>(work + (polys << lp));
  const Field field(r, reinterpret_cast<u8*>(acc + polys * n));
  const Rules rules{r};
  const u16* exponents = args.exponents + u64(blockIdx.x) * args.row_exponents();
  const u32 table = r.index == nullptr ? 0 : r.index[blockIdx.x];

  const u32 turn = exponents[args.steps << args.log_keys];
  for (u32 t = threadIdx.x; t < polys * n; t += blockDim.x) {
    const u32 m = t & (n - 1), from = (m + turn) & (2 * n - 1);
    i32 value = 0;
    if (t / n >= r.glwe_dim) {
      const u64 v = r.luts[u64(table) * n + (from & (n - 1))];
      value = rules.centred(from < n || v == 0 ? v : r.modulus - v);
    }
    acc[t] = value;
  }
  __syncthreads();

  const u64 step_points = u64(polys * polys) << (args.log_keys + lp);
  const double2* key = static_cast<const double2*>(r.key);
  for (u32 i = 0; i < args.steps; ++i, key += step_points, exponents += 1u << args.log_keys) {
    forward<Field, LP, RMax>(field, work, polys, lp,
                             [&](u32 poly) { return field.points_of(acc + poly * n, 0); });
    for (u32 f = threadIdx.x; f < 1u << lp; f += blockDim.x)
      bundle_point<Polys>(field, args, exponents, key, work, f, place<double2>(f, swizzle), lp);
    __syncthreads();
    inverse<Field, LP, RMax>(field, work, polys, lp,
                             [&](u32 poly, u32 base, u32 stride, const auto& v) {
                               field.template store<true>(acc + poly * n, base, stride, v);
                             });
  }
  __syncthreads();

  const u32 words = r.glwe_dim * n + 1;
  for (u32 t = threadIdx.x; t < r.outputs * words; t += blockDim.x) {
    const u32 output = t / words, w = t % words, at = output * (n / r.outputs);
    u64 x;
    if (w < r.glwe_dim * n) {
      const u32 j = w & (n - 1);
      x = rules.canonical(acc[w - j + ((at - j) & (n - 1))]);
      if (j > at && x != 0) x = r.modulus - x;
    } else {
      x = rules.canonical(acc[r.glwe_dim * n + at]) + r.offsets[table];
      if (x >= r.modulus) x -= r.modulus;
    }
    // Q is a power of two: floor((x q + Q / 2) / Q)
    const u32 drop = r.log_modulus - args.log_rest_modulus;
    const u64 rounded = drop == 0 ? x : (x + (u64(1) << (drop - 1))) >> drop;
    args.out[u64(blockIdx.x) * r.outputs * words + t] =
        static_cast<u32>(rounded & ((u64(1) << args.log_rest_modulus) - 1));
  }
}

}  // namespace crenel::backend::cuda::torus
