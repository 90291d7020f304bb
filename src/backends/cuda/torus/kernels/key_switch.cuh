// Key switch of LWE rows: sums of key rows chosen by digits, then a modulus switch.
#pragma once

#include "backends/cuda/ptx.cuh"
#include "crenel/core/types.h"

namespace crenel::backend::cuda::torus {

struct SwitchArgs {
  u32* out;
  const u64* in;
  const void* key;
  void* sums;  ///< [batch][out_words], zero at first; words of the key
  u32 batch, in_dim, out_dim, slots;
  u32 base_log, digits, log_modulus, log_out_modulus;
  u32 part;  ///< input words that a block takes
};

inline constexpr u32 kSwitchThreads = 512;
/// Columns of the output that a block takes: two neighbours a lane.
inline constexpr u32 kSwitchColumns = 64;
/// Input rows a warp: a lane holds the input word of each. Sums of 64 bits leave room for fewer.
template <class Word>
inline constexpr u32 kSwitchRows = sizeof(Word) == 4 ? 32 : 16;
template <class Word>
inline constexpr u32 kSwitchBlockRows = kSwitchRows<Word> * (kSwitchThreads / 32);
inline constexpr u32 kSwitchStages = 3;  ///< tiles in flight

template <class Word>
__device__ __forceinline__ void add_to(Word* to, Word value) {
  if constexpr (sizeof(Word) == 8)
    atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
  else
    atomicAdd(to, value);
}

/// Large batches. The 2^base_log rows of one digit position (the row of digit 0 is zero) come into
/// shared memory once for all input rows of the block: a digit is then an address there. Sums wrap,
/// so their order does not matter. Grid: x columns, y input rows, z parts of the input.
template <class Word>
struct alignas(2 * sizeof(Word)) WordPair {
  Word low, high;
};

template <class Word>
__global__ void __launch_bounds__(kSwitchThreads)
    switch_tiled(const __grid_constant__ SwitchArgs args) {
  begin_kernel();
  extern __shared__ __align__(16) u8 shared[];
  const u32 words = args.out_dim + args.slots, base = 1u << args.base_log;
  const u32 tile_words = base * kSwitchColumns;
  Word* const tiles = reinterpret_cast<Word*>(shared);  // [stage][2^base_log][kSwitchColumns]
  const u32 first = blockIdx.x * kSwitchColumns;
  const u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  constexpr u32 kRows = kSwitchRows<Word>;
  const u32 row0 = blockIdx.y * kSwitchBlockRows<Word> + warp * kRows;
  const u32 begin = blockIdx.z * args.part, end = min(begin + args.part, args.in_dim);
  const Word* const key = static_cast<const Word*>(args.key);
  const u32 in_words = args.in_dim + args.slots;
  const u32 steps = (end - begin) * args.digits;

  for (u32 t = threadIdx.x; t < kSwitchStages * kSwitchColumns; t += kSwitchThreads)
    tiles[t / kSwitchColumns * tile_words + t % kSwitchColumns] = 0;
  const auto fetch = [&](u32 step) {
    if (step < steps) {
      Word* const tile = tiles + step % kSwitchStages * tile_words + kSwitchColumns;
      const Word* const rows = key + (u64(begin) * args.digits + step) * (base - 1) * words + first;
      for (u32 t = threadIdx.x; t < (base - 1) * kSwitchColumns; t += kSwitchThreads) {
        const u32 v = t / kSwitchColumns, c = t % kSwitchColumns;
        if (first + c < words) copy_async<sizeof(Word)>(tile + t, rows + u64(v) * words + c);
      }
    }
    commit_copies();
  };
  for (u32 s = 0; s + 1 < kSwitchStages; ++s) fetch(s);

  Word sum[kRows][2] = {};
  const u32 my_row = row0 + lane % kRows;
  u64 x = 0;
  for (u32 step = 0; step < steps; ++step) {
    const u32 digit = step % args.digits;
    if (digit == 0)
      x = my_row < args.batch ? args.in[u64(my_row) * in_words + begin + step / args.digits] : 0;
    wait_for_copies_but<kSwitchStages - 2>();
    __syncthreads();  // the tile is complete, and the one before it is free
    fetch(step + kSwitchStages - 1);
    const Word* const tile = tiles + step % kSwitchStages * tile_words + 2 * lane;
    const u32 mine = (static_cast<u32>(x >> (args.base_log * digit)) & (base - 1)) * kSwitchColumns;
#pragma unroll
    for (u32 r = 0; r < kRows; ++r) {
      const auto pair =
          *reinterpret_cast<const WordPair<Word>*>(tile + __shfl_sync(0xffffffffu, mine, r));
      sum[r][0] += pair.low;
      sum[r][1] += pair.high;
    }
  }
  wait_for_copies_but<0>();
#pragma unroll
  for (u32 r = 0; r < kRows; ++r)
#pragma unroll
    for (u32 h = 0; h < 2; ++h) {
      const u32 c = first + 2 * lane + h;
      if (row0 + r < args.batch && c < words)
        add_to(static_cast<Word*>(args.sums) + u64(row0 + r) * words + c, sum[r][h]);
    }
}

/// Small batches: only the rows of the digits that occur are read. Grid: x columns, y input rows, z
/// parts of the input.
inline constexpr u32 kDirectThreads = 128;
template <class Word>
__global__ void __launch_bounds__(kDirectThreads)
    switch_direct(const __grid_constant__ SwitchArgs args) {
  begin_kernel();
  const u32 words = args.out_dim + args.slots, mask = (1u << args.base_log) - 1;
  const u32 c = blockIdx.x * kDirectThreads + threadIdx.x, row = blockIdx.y;
  if (c >= words) return;
  const Word* const key = static_cast<const Word*>(args.key) + c;
  const u64* const in = args.in + u64(row) * (args.in_dim + args.slots);
  const u32 begin = blockIdx.z * args.part, end = min(begin + args.part, args.in_dim);
  Word sum = 0;
  // Several rows in flight: the address of each depends on a digit.
#pragma unroll 4
  for (u32 i = begin; i < end; ++i) {
    const u64 x = in[i];
#pragma unroll 2
    for (u32 j = 0; j < args.digits; ++j) {
      const u32 v = static_cast<u32>(x >> (args.base_log * j)) & mask;
      const Word word = key[((u64(i) * args.digits + j) * mask + (v != 0 ? v - 1 : 0)) * words];
      sum += v != 0 ? word : Word(0);
    }
  }
  add_to(static_cast<Word*>(args.sums) + u64(row) * words + c, sum);
}

/// out = (0, b) - sums, from modulus 2^log_modulus to 2^log_out_modulus.
template <class Word>
__global__ void __launch_bounds__(256) switch_finish(const __grid_constant__ SwitchArgs args) {
  begin_kernel();
  const u32 words = args.out_dim + args.slots;
  const u64 t = u64(blockIdx.x) * 256 + threadIdx.x;
  if (t >= u64(args.batch) * words) return;
  const u32 row = static_cast<u32>(t / words), c = static_cast<u32>(t % words);
  const Word b =
      c < args.out_dim
          ? 0
          : static_cast<Word>(
                args.in[u64(row) * (args.in_dim + args.slots) + args.in_dim + c - args.out_dim]);
  const u64 modulus_mask = ~u64(0) >> (64 - args.log_modulus);
  const u64 x = static_cast<u64>(static_cast<Word>(b - static_cast<const Word*>(args.sums)[t])) &
                modulus_mask;
  const u32 drop = args.log_modulus - args.log_out_modulus;
  const u64 rounded = drop == 0 ? x : ((x >> (drop - 1)) + 1) >> 1;
  args.out[t] = static_cast<u32>(rounded & (~u64(0) >> (64 - args.log_out_modulus)));
}

}  // namespace crenel::backend::cuda::torus
