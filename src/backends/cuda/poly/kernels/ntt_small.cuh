// Whole transforms of small rings (log_n < 10), one block a limb, in shared memory: the plain
// stage-by-stage algorithm.
#pragma once

#include "backends/cuda/poly/device/transform.cuh"

namespace crenel::backend::cuda {

inline constexpr u32 kSmallThreads = 128;

__global__ void __launch_bounds__(kSmallThreads)
    small_forward(const __grid_constant__ TransformArgs args) {
  begin_kernel();
  __shared__ u32 x[1u << kMinFastLogN];
  const u32 limb = blockIdx.y, id = args.prime.at[limb];
  const u32 q = args.primes[id].q, q_inv = args.primes[id].q_inv;
  const u32* roots = args.small_roots + (u64(id) << args.log_n);
  const u32 b = blockIdx.z / args.components, c = blockIdx.z % args.components;
  const u32* from = args.in.limb(b, c, args.in_position.at[limb], args.log_n);
  u32* to = args.out.limb(b, c, limb, args.log_n);
  const u32 n = 1u << args.log_n;
  for (u32 i = threadIdx.x; i < n; i += kSmallThreads) x[i] = from[i];
  for (u32 s = 0; s < args.log_n; ++s) {
    __syncthreads();
    const u32 bits = args.log_n - 1 - s;  // log2 of the distance of a pair
    for (u32 i = threadIdx.x; i < n / 2; i += kSmallThreads) {
      const u32 block = i >> bits;
      const u32 low = block << (bits + 1) | (i & ((1u << bits) - 1));
      const u32 t = mont_mul(x[low + (1u << bits)], roots[(1u << s) + block], q, q_inv);
      const u32 a = x[low];
      x[low] = add_mod(a, t, q);
      x[low + (1u << bits)] = sub_mod(a, t, q);
    }
  }
  __syncthreads();
  for (u32 i = threadIdx.x; i < n; i += kSmallThreads) to[i] = x[i];
}

__global__ void __launch_bounds__(kSmallThreads)
    small_inverse(const __grid_constant__ TransformArgs args) {
  begin_kernel();
  __shared__ u32 x[1u << kMinFastLogN];
  const u32 limb = blockIdx.y, id = args.prime.at[limb];
  const u32 q = args.primes[id].q, q_inv = args.primes[id].q_inv;
  const u32* roots = args.small_roots + (u64(id) << args.log_n);
  const u32 b = blockIdx.z / args.components, c = blockIdx.z % args.components;
  const u32* from = args.in.limb(b, c, args.in_position.at[limb], args.log_n);
  u32* to = args.out.limb(b, c, limb, args.log_n);
  const u32 n = 1u << args.log_n;
  for (u32 i = threadIdx.x; i < n; i += kSmallThreads) x[i] = from[i];
  for (u32 s = args.log_n; s-- > 0;) {
    __syncthreads();
    const u32 bits = args.log_n - 1 - s;
    for (u32 i = threadIdx.x; i < n / 2; i += kSmallThreads) {
      const u32 block = i >> bits;
      const u32 low = block << (bits + 1) | (i & ((1u << bits) - 1));
      const u32 a = x[low], t = x[low + (1u << bits)];
      x[low] = add_mod(a, t, q);
      x[low + (1u << bits)] = mont_mul(sub_mod(a, t, q), roots[(1u << s) + block], q, q_inv);
    }
  }
  __syncthreads();
  for (u32 i = threadIdx.x; i < n; i += kSmallThreads)
    to[i] = shoup_mul(x[i], args.primes[id].n_inv, q);
}

}  // namespace crenel::backend::cuda
