// Inner product of digits with a switching key.
#pragma once

#include "backends/cuda/poly/device/views.cuh"
#include "backends/cuda/poly/tuning/elementwise.h"

namespace crenel::backend::cuda {

struct KeyArgs {
  const PrimeConstants* primes;
  Poly<u32> out;
  Poly<const u32> digits;
  KeyPoly key;
  u32 log_n;
  u32 count;  ///< digits
  LimbBytes prime;
  LimbBytes in_key;  ///< position of the limb
};

/// out_c = sum_d digits_d key_(d,c). Grid: x tiles of 4 * kElementThreads values, y batch, z limbs:
/// batch entries meet a limb of the key in L2, where a whole key may not fit.
/// Sums of up to four products of 31-bit words fit 64 bits; further ones are folded in.
__global__ void __launch_bounds__(kElementThreads)
    key_multiply(const __grid_constant__ KeyArgs args) {
  begin_kernel();
  const u32 limb = blockIdx.z, batch = blockIdx.y, id = args.prime.at[limb];
  const u32 at = 4 * (threadIdx.x + blockIdx.x * kElementThreads);
  if (at >= (1u << args.log_n)) return;
  const PrimeConstants m = args.primes[id];
  const u64 policy = streaming_policy();
  const u32* key = args.key.words() + (u64(args.in_key.at[limb]) << args.log_n) + at;
  u64 acc[2][4] = {};
  for (u32 first = 0; first < args.count; first += kKeyDigitsInFlight) {
    uint4 x[kKeyDigitsInFlight], k[2][kKeyDigitsInFlight];
#pragma unroll
    for (u32 j = 0; j < kKeyDigitsInFlight; ++j) {
      if (first + j >= args.count) break;
      k[0][j] = load_streaming(key, policy);
      k[1][j] = load_streaming(key + args.key.component_stride, policy);
      key += args.key.digit_stride;
      x[j] = load4(args.digits.limb(batch, first + j, limb, args.log_n) + at);
    }
    if (first != 0) {
#pragma unroll
      for (u32 c = 0; c < 2; ++c)
#pragma unroll
        for (u32 u = 0; u < 4; ++u) acc[c][u] = mont_reduce(fold(acc[c][u], m.r), m.q, m.q_inv);
#pragma unroll
      for (u32 c = 0; c < 2; ++c)
#pragma unroll
        for (u32 u = 0; u < 4; ++u)
          acc[c][u] = mont_mul(static_cast<u32>(acc[c][u]), m.r2, m.q, m.q_inv);
    }
#pragma unroll
    for (u32 j = 0; j < kKeyDigitsInFlight; ++j) {
      if (first + j >= args.count) break;
#pragma unroll
      for (u32 c = 0; c < 2; ++c) {
        acc[c][0] = mad_wide(x[j].x, k[c][j].x, acc[c][0]);
        acc[c][1] = mad_wide(x[j].y, k[c][j].y, acc[c][1]);
        acc[c][2] = mad_wide(x[j].z, k[c][j].z, acc[c][2]);
        acc[c][3] = mad_wide(x[j].w, k[c][j].w, acc[c][3]);
      }
    }
  }
#pragma unroll
  for (u32 c = 0; c < 2; ++c)
    store4(args.out.limb(batch, c, limb, args.log_n) + at,
           make_uint4(reduce_wide(acc[c][0], m), reduce_wide(acc[c][1], m),
                      reduce_wide(acc[c][2], m), reduce_wide(acc[c][3], m)));
}

}  // namespace crenel::backend::cuda
