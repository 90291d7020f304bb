// Key switch whose digits multiply the key's rows: a block takes a tile of rows and of words
// through the whole key, the digits of some words of the masks in shared memory.
#pragma once

#include "backends/cuda/ptx.cuh"

namespace crenel::backend::cuda::torus {

inline constexpr u32 kProductRows = 16, kProductWords = 128;
/// Words of a mask whose digits are cut at a time; at most so many digits of each.
inline constexpr u32 kProductPart = 16, kProductDigits = 40;

struct ProductSwitchArgs {
  u32* out;
  const u32* in;
  const u32* key;  ///< [in_dim][digits][words]
  u32 batch;
  u32 in_dim, out_dim, slots;
  u32 base_log, digits;
  u32 log_in_modulus, log_modulus, log_out_modulus;
  u64 middle;  ///< half of the base for every digit
};

/// round(x / 2^(from - to)), halves up, modulo 2^to; from >= to.
__device__ __forceinline__ u32 rounded_to(u64 x, u32 from, u32 to) {
  const u64 half = from == to ? 0 : u64(1) << (from - to - 1);
  return static_cast<u32>((x + half) >> (from - to) & ((u64(1) << to) - 1));
}

__global__ void __launch_bounds__(kProductWords)
    product_switch(const __grid_constant__ ProductSwitchArgs args) {
  begin_kernel();
  __shared__ u32 cut[kProductPart * kProductDigits][kProductRows];
  const u32 words = args.out_dim + args.slots, in_words = args.in_dim + args.slots;
  const u32 word = blockIdx.x * blockDim.x + threadIdx.x, first = blockIdx.y * kProductRows;
  const u32 kept = args.base_log * args.digits, base = 1u << args.base_log;
  u32 sum[kProductRows] = {};
  for (u32 part = 0; part < args.in_dim; part += kProductPart) {
    const u32 count = min(kProductPart, args.in_dim - part);
    __syncthreads();
    for (u32 t = threadIdx.x; t < count * kProductRows; t += blockDim.x) {
      const u32 row = t / count, i = t % count;
      u64 x = 0;
      if (first + row < args.batch)
        x = rounded_to(args.in[u64(first + row) * in_words + part + i], args.log_in_modulus, kept) +
            args.middle;
      for (u32 j = 0; j < args.digits; ++j)
        cut[i * args.digits + j][row] =
            (static_cast<u32>(x >> (args.base_log * j)) & (base - 1)) - base / 2;
    }
    __syncthreads();
    if (word >= words) continue;
    const u32* key = args.key + u64(part) * args.digits * words + word;
    for (u32 k = 0; k < count * args.digits; ++k, key += words) {
      const u32 value = *key;
#pragma unroll
      for (u32 row = 0; row < kProductRows; ++row) sum[row] -= cut[k][row] * value;
    }
  }
  if (word >= words) return;
  const u32 mask = static_cast<u32>((u64(1) << args.log_modulus) - 1);
#pragma unroll
  for (u32 row = 0; row < kProductRows; ++row) {
    if (first + row >= args.batch) break;
    u32 x = sum[row];
    if (word >= args.out_dim)
      x += rounded_to(args.in[u64(first + row) * in_words + args.in_dim + word - args.out_dim],
                      args.log_in_modulus, args.log_modulus);
    args.out[u64(first + row) * words + word] =
        rounded_to(x & mask, args.log_modulus, args.log_out_modulus);
  }
}

}  // namespace crenel::backend::cuda::torus
