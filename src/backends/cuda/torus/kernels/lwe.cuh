// Element-wise operations and samples of LWE rows.
#pragma once

#include "backends/cuda/ptx.cuh"
#include "random/samplers.h"

namespace crenel::backend::cuda::torus {

inline constexpr u32 kLweThreads = 256;
inline constexpr u32 kMaxTerms = 8;

struct LinearArgs {
  u32* out;
  const u32* in[kMaxTerms];
  u32 factor[kMaxTerms];  ///< modulo 2^32
  u32 terms, constant, mask, dim, words;
  u64 count;  ///< words in all
};

__global__ void __launch_bounds__(kLweThreads) lwe_linear(const __grid_constant__ LinearArgs args) {
  begin_kernel();
  const u64 t = u64(blockIdx.x) * kLweThreads + threadIdx.x;
  if (t >= args.count) return;
  u32 sum = t % args.words >= args.dim ? args.constant : 0;
  for (u32 k = 0; k < args.terms; ++k) sum += args.factor[k] * args.in[k][t];
  args.out[t] = sum & args.mask;
}

/// Of one launch: together what 4 KiB of arguments hold.
inline constexpr u32 kMaxSums = 64, kMaxSumTerms = 160;

struct SumsArgs {
  u32* out;
  u64 count;  ///< words of a sum
  u32 mask, dim, words;
  u32 constant[kMaxSums];
  u8 terms_end[kMaxSums];      ///< of the sum: those from the end of the one before on
  u32 factor[kMaxSumTerms];    ///< modulo 2^32
  u64 row_step[kMaxSumTerms];  ///< words from a row to the next
  const u32* in[kMaxSumTerms];
};

/// Grid: x words of a sum, y sums.
__global__ void __launch_bounds__(kLweThreads) lwe_sums(const __grid_constant__ SumsArgs args) {
  begin_kernel();
  const u64 t = u64(blockIdx.x) * kLweThreads + threadIdx.x;
  if (t >= args.count) return;
  const u32 y = blockIdx.y, begin = y == 0 ? 0 : args.terms_end[y - 1];
  const u64 row = t / args.words;
  const u32 i = static_cast<u32>(t - row * args.words);
  u32 sum = i >= args.dim ? args.constant[y] : 0;
  for (u32 k = begin; k < args.terms_end[y]; ++k)
    sum += args.factor[k] * args.in[k][row * args.row_step[k] + i];
  args.out[y * args.count + t] = sum & args.mask;
}

__global__ void __launch_bounds__(kLweThreads)
    lwe_mod_switch(u32* out, u32 log_to, const u32* in, u32 log_from, u64 count) {
  begin_kernel();
  const u64 t = u64(blockIdx.x) * kLweThreads + threadIdx.x;
  if (t >= count) return;
  const u32 mask = 0xffffffffu >> (32 - log_to);
  if (log_to >= log_from) {
    out[t] = in[t] << (log_to - log_from) & mask;
  } else {
    const u32 drop = log_from - log_to;
    out[t] = ((in[t] >> (drop - 1)) + 1) >> 1 & mask;
  }
}

struct ExtractArgs {
  u32* out;
  const u32* b;
  const u32* a;
  const u32* positions;
  u64 count;  ///< words in all
  u32 dim, log_stride, log_modulus, modulus;
};

/// A thread a word of the rows.
__global__ void __launch_bounds__(kLweThreads)
    lwe_extract(const __grid_constant__ ExtractArgs args) {
  begin_kernel();
  const u64 t = u64(blockIdx.x) * kLweThreads + threadIdx.x;
  if (t >= args.count) return;
  const u64 y = t / (args.dim + 1);
  const u32 j = static_cast<u32>(t - y * (args.dim + 1)), p = args.positions[y];
  const u32 u = p >> args.log_stride, v = p & ((1u << args.log_stride) - 1);
  u32 x = args.b[p];
  if (j < args.dim) {
    x = args.a[(u64((args.dim + u - j) & (args.dim - 1)) << args.log_stride) + v];
    if (j <= u && x != 0) x = args.modulus - x;
  }
  const u64 scaled = ((u64(x) << args.log_modulus) + args.modulus / 2) / args.modulus;
  args.out[t] = static_cast<u32>(scaled) & 0xffffffffu >> (32 - args.log_modulus);
}

struct EmbedArgs {
  i64* out;
  const u32* in;
  const u32* rows;
  u64 count;  ///< coefficients of a in all
  u32 dim, log_stride, log_degree, log_modulus;
};

/// A thread a coefficient of a and the one of b at its place.
__global__ void __launch_bounds__(kLweThreads) lwe_embed(const __grid_constant__ EmbedArgs args) {
  begin_kernel();
  const u64 t = u64(blockIdx.x) * kLweThreads + threadIdx.x;
  if (t >= args.count) return;
  const u64 c = t >> args.log_degree, at = t & ((u64(1) << args.log_degree) - 1);
  const u32 i = static_cast<u32>(at >> args.log_stride);
  const u32 v = static_cast<u32>(at) & ((1u << args.log_stride) - 1);
  const u32 y = args.rows[(c << args.log_stride) + v], drop = 32 - args.log_modulus;
  i64 a = 0, b = 0;
  if (y != ~0u) {
    const u32* const row = args.in + u64(y) * (args.dim + 1);
    const i64 word = static_cast<i32>(row[i == 0 ? 0 : args.dim - i] << drop) >> drop;
    a = i == 0 ? -word : word;
    if (i == 0) b = static_cast<i32>(row[args.dim] << drop) >> drop;
  }
  i64* const out = args.out + (2 * c << args.log_degree) + at;
  out[0] = b;
  out[u64(1) << args.log_degree] = a;
}

struct SampleLweArgs {
  void* out;
  u64 rows;
  u32 dim, slots, log_modulus;
  random::ChaChaState mask, error;  ///< of row 0
  const i8* secrets;
  const u64* values;  ///< messages (may be null), or bodies
};

__device__ __forceinline__ random::ChaChaState row_state(const random::ChaChaState& first,
                                                         u64 row) {
  random::ChaChaState s = first;
  const u64 serial = (u64(s.nonce[2]) << 32 | s.nonce[1]) + row;
  s.nonce[1] = static_cast<u32>(serial);
  s.nonce[2] = static_cast<u32>(serial >> 32);
  return s;
}

/// A warp a row. Sample: bodies <a, s_j> + e_j + message_j; otherwise (expand) those given.
template <class Word, bool Sample>
__global__ void __launch_bounds__(128) lwe_rows(const __grid_constant__ SampleLweArgs args) {
  begin_kernel();
  const u64 row = u64(blockIdx.x) * 4 + threadIdx.x / 32;
  if (row >= args.rows) return;
  const u32 lane = threadIdx.x & 31;
  constexpr u32 kPerBlock = 64 / sizeof(Word);
  const u64 modulus_mask = ~u64(0) >> (64 - args.log_modulus);
  Word* const out = static_cast<Word*>(args.out) + row * (args.dim + args.slots);
  const random::ChaChaState state = row_state(args.mask, row);
  for (u32 block = lane; block * kPerBlock < args.dim; block += 32) {
    const random::ChaChaBlock key_stream = random::chacha20_block(state, block);
#pragma unroll
    for (u32 u = 0; u < kPerBlock; ++u) {
      const u32 i = block * kPerBlock + u;
      u64 x = key_stream.word[u * (sizeof(Word) / 4)];
      if constexpr (sizeof(Word) == 8) x |= u64(key_stream.word[2 * u + 1]) << 32;
      if (i < args.dim) out[i] = static_cast<Word>(x & modulus_mask);
    }
  }
  if constexpr (!Sample) {
    for (u32 j = lane; j < args.slots; j += 32)
      out[args.dim + j] = static_cast<Word>(args.values[row * args.slots + j] & modulus_mask);
    return;
  }
  __syncwarp();
  for (u32 j = 0; j < args.slots; ++j) {
    u64 sum = 0;
    for (u32 i = lane; i < args.dim; i += 32)
      sum += static_cast<u64>(out[i]) *
             static_cast<u64>(static_cast<i64>(args.secrets[u64(j) * args.dim + i]));
    for (u32 d = 16; d != 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (lane != 0) continue;
    const random::ChaChaBlock errors =
        random::chacha20_block(row_state(args.error, row), j / random::kErrorPerBlock);
    // A constant index keeps the block in registers, and its bits out of addresses.
    i32 error = 0;
#pragma unroll
    for (u32 u = 0; u < random::kErrorPerBlock; ++u)
      if (u == j % random::kErrorPerBlock) error = random::error_value(errors, u);
    sum += static_cast<u64>(static_cast<i64>(error));
    if (args.values != nullptr) sum += args.values[row * args.slots + j];
    out[args.dim + j] = static_cast<Word>(sum & modulus_mask);
  }
}

struct PhaseArgs {
  u32* out;
  const u32* in;
  u64 rows;
  u32 dim, slots, mask;
  const i8* secrets;
};

/// A warp a row.
__global__ void __launch_bounds__(128) lwe_phase(const __grid_constant__ PhaseArgs args) {
  begin_kernel();
  const u64 row = u64(blockIdx.x) * 4 + threadIdx.x / 32;
  if (row >= args.rows) return;
  const u32 lane = threadIdx.x & 31;
  const u32* const in = args.in + row * (args.dim + args.slots);
  for (u32 j = 0; j < args.slots; ++j) {
    u32 sum = 0;
    for (u32 i = lane; i < args.dim; i += 32)
      sum += in[i] * static_cast<u32>(static_cast<i32>(args.secrets[u64(j) * args.dim + i]));
    for (u32 d = 16; d != 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (lane == 0) args.out[row * args.slots + j] = in[args.dim + j] - sum & args.mask;
  }
}

}  // namespace crenel::backend::cuda::torus
