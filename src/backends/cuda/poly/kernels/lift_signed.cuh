// Residues of one or two primes to signed integers.
#pragma once

#include "backends/cuda/poly/device/views.cuh"
#include "backends/cuda/poly/tuning/elementwise.h"

namespace crenel::backend::cuda {

struct LiftArgs {
  Poly<const u32> in;
  i64* values;  ///< [batch][component][N]
  u32 log_n;
  u32 components;
  u32 q0;
  u32 q1;      ///< 1 for a single limb
  Pair one;    ///< 1 as a Shoup constant of q1: takes x0 below q1
  Pair scale;  ///< q0^-1 mod q1
};

// x c mod q in [0, q) for any word x.
__device__ __forceinline__ u32 mul_shoup(u32 x, Pair c, u32 q) {
  return reduce_once(x * c.value - mul_hi_wide(x, c.quotient) * q, q);
}

/// x0 + q0 t with t = (x1 - x0) / q0 mod q1, then the representative nearest to zero. Grid: x tiles
/// of 4 * kElementThreads values, z polynomials.
template <bool Two>
__global__ void __launch_bounds__(kElementThreads)
    lift_signed(const __grid_constant__ LiftArgs args) {
  begin_kernel();
  const u32 poly = blockIdx.z;
  const u32 b = poly / args.components, c = poly % args.components;
  const u32 at = 4 * (threadIdx.x + blockIdx.x * kElementThreads);
  if (at >= (1u << args.log_n)) return;
  const uint4 x0 = load4(args.in.limb(b, c, 0, args.log_n) + at);
  const uint4 x1 = Two ? load4(args.in.limb(b, c, 1, args.log_n) + at) : uint4{};
  const i64 product = static_cast<i64>(u64(args.q0) * args.q1), half = product / 2;
  const auto one = [&](u32 r0, u32 r1) {
    i64 x = r0;
    if constexpr (Two) {
      const u32 difference = sub_mod(r1, mul_shoup(r0, args.one, args.q1), args.q1);
      x = static_cast<i64>(mad_wide(args.q0, mul_shoup(difference, args.scale, args.q1), u64(r0)));
    }
    return x > half ? x - product : x;
  };
  longlong2* to = reinterpret_cast<longlong2*>(args.values + (u64(poly) << args.log_n) + at);
  to[0] = make_longlong2(one(x0.x, x1.x), one(x0.y, x1.y));
  to[1] = make_longlong2(one(x0.z, x1.z), one(x0.w, x1.w));
}

}  // namespace crenel::backend::cuda
