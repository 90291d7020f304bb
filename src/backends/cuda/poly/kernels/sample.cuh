// Samplers and the reduction of signed integers. Arithmetic and mappings are those of random/.
#pragma once

#include "backends/cuda/poly/device/views.cuh"
#include "random/samplers.h"

namespace crenel::backend::cuda {

inline constexpr u32 kSampleThreads = 128;
/// Limbs of a block of reduce_signed: with all of them in one, 128 blocks of four warps stored 49
/// times one after the other, which left most of a GPU idle (dev/kernels/README.md, b45).
inline constexpr u32 kReducedLimbs = 8;

struct SampleArgs {
  const math::Modulus<u32>* moduli;
  Poly<u32> out;
  u32 log_n;
  u32 components;
  u32 limbs;
  LimbBytes prime;
  random::ChaChaState state;  ///< of polynomial 0
};

__device__ __forceinline__ random::ChaChaState state_of(const SampleArgs& args, u32 poly) {
  random::ChaChaState s = args.state;
  const u64 serial = (u64(s.nonce[2]) << 32 | s.nonce[1]) + poly;
  s.nonce[1] = static_cast<u32>(serial);
  s.nonce[2] = static_cast<u32>(serial >> 32);
  return s;
}

/// Thread = one ChaCha20 block = four values. Grid: x tiles, y limbs, z polynomials.
__global__ void __launch_bounds__(kSampleThreads)
    sample_uniform(const __grid_constant__ SampleArgs args) {
  begin_kernel();
  const u32 i = 4 * (blockIdx.x * kSampleThreads + threadIdx.x);
  if (i >= (1u << args.log_n)) return;
  const u32 limb = blockIdx.y, poly = blockIdx.z, id = args.prime.at[limb];
  const math::Modulus<u32> m = args.moduli[id];
  const random::ChaChaBlock block =
      random::chacha20_block(state_of(args, poly), random::uniform_block(id, i, args.log_n));
  u32 v[4];
#pragma unroll
  for (u32 u = 0; u < 4; ++u) v[u] = random::uniform_residue(block, u, m);
  u32* to = args.out.limb(poly / args.components, poly % args.components, limb, args.log_n);
  store4(to + i, make_uint4(v[0], v[1], v[2], v[3]));
}

/// The same small integers modulo every limb; thread = four coefficients. The position inside the
/// keystream block is selected without data-dependent addresses. Grid: x tiles, y 1, z polynomials.
template <bool Ternary>
__global__ void __launch_bounds__(kSampleThreads)
    sample_small(const __grid_constant__ SampleArgs args) {
  begin_kernel();
  const u32 i = 4 * (blockIdx.x * kSampleThreads + threadIdx.x);
  if (i >= (1u << args.log_n)) return;
  const u32 poly = blockIdx.z;
  constexpr u32 kPerBlock = Ternary ? random::kTernaryPerBlock : random::kErrorPerBlock;
  const random::ChaChaBlock block = random::chacha20_block(state_of(args, poly), i / kPerBlock);
  // A constant index keeps the block in registers.
  i32 value[4] = {0, 0, 0, 0};
  const u32 wanted = i % kPerBlock / 4;
  if constexpr (Ternary) {
    u32 word = 0;  // 16 coefficients a word, four of them are this thread's
#pragma unroll
    for (u32 w = 0; w < 16; ++w) word = wanted / 4 == w ? block.word[w] : word;
    random::ChaChaBlock one;
    one.word[0] = word >> (8 * (wanted % 4));
#pragma unroll
    for (u32 u = 0; u < 4; ++u) value[u] = random::ternary_value(one, u);
  } else {
#pragma unroll
    for (u32 u = 0; u < 4; ++u) {
      const i32 low = random::error_value(block, u), high = random::error_value(block, 4 + u);
      value[u] = wanted == 0 ? low : high;
    }
  }
  for (u32 limb = 0; limb < args.limbs; ++limb) {
    const u32 q = args.moduli[args.prime.at[limb]].q;
    u32* to = args.out.limb(poly / args.components, poly % args.components, limb, args.log_n);
    store4(to + i,
           make_uint4(random::small_residue(value[0], q), random::small_residue(value[1], q),
                      random::small_residue(value[2], q), random::small_residue(value[3], q)));
  }
}

/// x mod q for signed 64-bit x. Grid: x four coefficients a thread, y groups of kReducedLimbs, z
/// polynomials.
__global__ void __launch_bounds__(kSampleThreads)
    reduce_signed(const __grid_constant__ SampleArgs args, const i64* values) {
  begin_kernel();
  const u32 i = 4 * (blockIdx.x * kSampleThreads + threadIdx.x);
  if (i >= (1u << args.log_n)) return;
  const u32 poly = blockIdx.z;
  u64 magnitude[4];
  bool negative[4];
#pragma unroll
  for (u32 u = 0; u < 4; ++u) {
    const i64 x = values[(u64(poly) << args.log_n) + i + u];
    negative[u] = x < 0;
    magnitude[u] = x < 0 ? u64(0) - static_cast<u64>(x) : static_cast<u64>(x);
  }
  const u32 first = blockIdx.y * kReducedLimbs, last = min(first + kReducedLimbs, args.limbs);
  for (u32 limb = first; limb < last; ++limb) {
    const math::Modulus<u32> m = args.moduli[args.prime.at[limb]];
    u32 v[4];
#pragma unroll
    for (u32 u = 0; u < 4; ++u) {
      const u32 r = math::barrett_reduce<u32>(magnitude[u], m);
      v[u] = negative[u] ? math::neg_mod<u32>(r, m.q) : r;
    }
    u32* to = args.out.limb(poly / args.components, poly % args.components, limb, args.log_n);
    store4(to + i, make_uint4(v[0], v[1], v[2], v[3]));
  }
}

}  // namespace crenel::backend::cuda
