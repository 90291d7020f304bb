// Exponents of a blind rotation by groups: the best cut of every step, a block a row.
#pragma once

#include "backends/cuda/ptx.cuh"
#include "backends/cuda/torus/device/bundle.cuh"

namespace crenel::backend::cuda::torus {

inline constexpr u32 kCutThreads = 256;

/// c_S of every step of a row and the bodies' exponents, as device/torus/kernels.h has them.
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
  if (threadIdx.x < r.slots) {
    const u32 log_step = args.log_keys + log_range;
    const i64 body = (i64(in[r.lwe_dim + threadIdx.x]) << args.log_keys) -
                     static_cast<i64>(cut_off) + (i64(1) << (log_step - 1));
    out[(args.steps << args.log_keys) + threadIdx.x] =
        static_cast<u16>(static_cast<u32>(body >> log_step) & turn_mask);
  }
}

}  // namespace crenel::backend::cuda::torus
