// Element-wise operations: thread = kElementUnroll groups of four values, 16-byte accesses.
#pragma once

#include "backends/cuda/poly/device/views.cuh"
#include "backends/cuda/poly/tuning/elementwise.h"

namespace crenel::backend::cuda {

struct ElementArgs {
  const PrimeConstants* primes;
  Poly<u32> out;
  Poly<const u32> a;
  Poly<const u32> b;  ///< stride 0 along a broadcast axis
  u32 log_n;
  u32 components;
  LimbBytes prime;
};

/// device::LimbScalars, some of them times R.
struct ScalarArgs {
  u32 low[rns::kMaxLimbs];
  u32 high[rns::kMaxLimbs];
};

enum class BinaryOp { add, sub, mul, mul_add };
enum class ScalarOp { mul, mul_add, add, neg };

// First value of group k of a thread. Grid: x tiles, y limbs, z polynomials.
__device__ __forceinline__ u32 element_at(u32 k) {
  return 4 * (threadIdx.x + (blockIdx.x * kElementUnroll + k) * kElementThreads);
}

template <class F>
__device__ __forceinline__ uint4 map4(uint4 a, uint4 b, F f) {
  return make_uint4(f(a.x, b.x), f(a.y, b.y), f(a.z, b.z), f(a.w, b.w));
}

template <BinaryOp Op>
__global__ void __launch_bounds__(kElementThreads)
    binary(const __grid_constant__ ElementArgs args) {
  begin_kernel();
  const u32 limb = blockIdx.y, poly = blockIdx.z, n = 1u << args.log_n;
  const u32 b = poly / args.components, c = poly % args.components;
  const PrimeConstants m = args.primes[args.prime.at[limb]];
  const u32* pa = args.a.limb(b, c, limb, args.log_n);
  const u32* pb = args.b.limb(b, c, limb, args.log_n);
  u32* to = args.out.limb(b, c, limb, args.log_n);
  uint4 x[kElementUnroll], y[kElementUnroll], z[kElementUnroll];
#pragma unroll
  for (u32 k = 0; k < kElementUnroll; ++k) {
    if (element_at(k) >= n) break;
    x[k] = load4(pa + element_at(k));
    y[k] = load4(pb + element_at(k));
    if constexpr (Op == BinaryOp::mul_add) z[k] = load4(to + element_at(k));
  }
#pragma unroll
  for (u32 k = 0; k < kElementUnroll; ++k) {
    if (element_at(k) >= n) break;
    uint4 v = map4(x[k], y[k], [&](u32 s, u32 t) {
      if constexpr (Op == BinaryOp::add) return add_mod(s, t, m.q);
      if constexpr (Op == BinaryOp::sub) return sub_mod(s, t, m.q);
      return mul_mod(s, t, m);
    });
    if constexpr (Op == BinaryOp::mul_add)
      v = map4(v, z[k], [&](u32 s, u32 t) { return add_mod(s, t, m.q); });
    store4(to + element_at(k), v);
  }
}

/// out (+)= a op s; the scalars of mul and mul_add are times R.
template <ScalarOp Op>
__global__ void __launch_bounds__(kElementThreads)
    scalar(const __grid_constant__ ElementArgs args, const __grid_constant__ ScalarArgs scalars) {
  begin_kernel();
  const u32 limb = blockIdx.y, poly = blockIdx.z, n = 1u << args.log_n;
  const u32 b = poly / args.components, c = poly % args.components;
  const PrimeConstants& m = args.primes[args.prime.at[limb]];
  const u32 q = m.q, q_inv = m.q_inv;
  const u32 low = scalars.low[limb], high = scalars.high[limb];
  const u32* pa = args.a.limb(b, c, limb, args.log_n);
  u32* to = args.out.limb(b, c, limb, args.log_n);
  uint4 x[kElementUnroll], z[kElementUnroll];
#pragma unroll
  for (u32 k = 0; k < kElementUnroll; ++k) {
    if (element_at(k) >= n) break;
    x[k] = load4(pa + element_at(k));
    if constexpr (Op == ScalarOp::mul_add) z[k] = load4(to + element_at(k));
  }
#pragma unroll
  for (u32 k = 0; k < kElementUnroll; ++k) {
    if (element_at(k) >= n) break;
    const u32 s = element_at(k) < n / 2 ? low : high;
    uint4 v = map4(x[k], x[k], [&](u32 t, u32) {
      if constexpr (Op == ScalarOp::neg) return lift_once(0u - t, q);
      if constexpr (Op == ScalarOp::add) return add_mod(t, s, q);
      return mont_mul(t, s, q, q_inv);
    });
    if constexpr (Op == ScalarOp::mul_add)
      v = map4(v, z[k], [&](u32 t, u32 o) { return add_mod(t, o, q); });
    store4(to + element_at(k), v);
  }
}

/// (a0 b0, a0 b1 + a1 b0, a1 b1).
__global__ void __launch_bounds__(kElementThreads)
    tensor(const __grid_constant__ ElementArgs args) {
  begin_kernel();
  const u32 limb = blockIdx.y, b = blockIdx.z;
  const u32 at = 4 * (threadIdx.x + blockIdx.x * kElementThreads);
  if (at >= (1u << args.log_n)) return;
  const PrimeConstants m = args.primes[args.prime.at[limb]];
  const uint4 a0 = load4(args.a.limb(b, 0, limb, args.log_n) + at);
  const uint4 a1 = load4(args.a.limb(b, 1, limb, args.log_n) + at);
  const uint4 b0 = load4(args.b.limb(b, 0, limb, args.log_n) + at);
  const uint4 b1 = load4(args.b.limb(b, 1, limb, args.log_n) + at);
  uint4 d0, d1, d2;
  const auto one = [&](u32 x0, u32 x1, u32 y0, u32 y1, u32& z0, u32& z1, u32& z2) {
    // R times the first factors, so that one reduction a product suffices.
    x0 = mont_mul(x0, m.r2, m.q, m.q_inv);
    x1 = mont_mul(x1, m.r2, m.q, m.q_inv);
    z0 = mont_mul(x0, y0, m.q, m.q_inv);
    z1 = mont_reduce(mad_wide(x1, y0, u64(x0) * y1), m.q, m.q_inv);
    z2 = mont_mul(x1, y1, m.q, m.q_inv);
  };
  one(a0.x, a1.x, b0.x, b1.x, d0.x, d1.x, d2.x);
  one(a0.y, a1.y, b0.y, b1.y, d0.y, d1.y, d2.y);
  one(a0.z, a1.z, b0.z, b1.z, d0.z, d1.z, d2.z);
  one(a0.w, a1.w, b0.w, b1.w, d0.w, d1.w, d2.w);
  store4(args.out.limb(b, 0, limb, args.log_n) + at, d0);
  store4(args.out.limb(b, 1, limb, args.log_n) + at, d1);
  store4(args.out.limb(b, 2, limb, args.log_n) + at, d2);
}

/// (a0^2, 2 a0 a1, a1^2); Doubled: twice that, plus (doubled, 0, 0).
template <bool Doubled>
__global__ void __launch_bounds__(kElementThreads)
    tensor_square(const __grid_constant__ ElementArgs args,
                  const __grid_constant__ ScalarArgs doubled) {
  begin_kernel();
  const u32 limb = blockIdx.y, b = blockIdx.z, n = 1u << args.log_n;
  const u32 at = 4 * (threadIdx.x + blockIdx.x * kElementThreads);
  if (at >= n) return;
  const PrimeConstants m = args.primes[args.prime.at[limb]];
  const uint4 a0 = load4(args.a.limb(b, 0, limb, args.log_n) + at);
  const uint4 a1 = load4(args.a.limb(b, 1, limb, args.log_n) + at);
  const u32 constant = Doubled ? (at < n / 2 ? doubled.low[limb] : doubled.high[limb]) : 0;
  // R times the first factors, twice it when the result is doubled.
  const u32 factor = Doubled ? add_mod(m.r2, m.r2, m.q) : m.r2;
  uint4 d0, d1, d2;
  const auto one = [&](u32 x0, u32 x1, u32& z0, u32& z1, u32& z2) {
    const u32 y0 = mont_mul(x0, factor, m.q, m.q_inv), y1 = mont_mul(x1, factor, m.q, m.q_inv);
    z0 = mont_mul(y0, x0, m.q, m.q_inv);
    z1 = mont_mul(y0, x1, m.q, m.q_inv);
    z1 = add_mod(z1, z1, m.q);
    z2 = mont_mul(y1, x1, m.q, m.q_inv);
    if constexpr (Doubled) z0 = add_mod(z0, constant, m.q);
  };
  one(a0.x, a1.x, d0.x, d1.x, d2.x);
  one(a0.y, a1.y, d0.y, d1.y, d2.y);
  one(a0.z, a1.z, d0.z, d1.z, d2.z);
  one(a0.w, a1.w, d0.w, d1.w, d2.w);
  store4(args.out.limb(b, 0, limb, args.log_n) + at, d0);
  store4(args.out.limb(b, 1, limb, args.log_n) + at, d1);
  store4(args.out.limb(b, 2, limb, args.log_n) + at, d2);
}

}  // namespace crenel::backend::cuda
