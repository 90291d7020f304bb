// Base conversion and the column pass of what it makes, in one launch: converted limbs are never
// written between the two.
//
// A block keeps the sources of a tile of columns in registers, as operands of the matrix units
// (base_convert.cuh), and goes through its destinations eight at a time. Which coefficient a column
// of such a product stands for is free: they are laid so that what a thread gets of a destination
// are the sixteen values, one every 2^(Bits - 4) rows, on which its first round of butterflies
// works. One exchange through shared memory, and the second round ends the pass. Two exchanges take
// turns, so that a barrier for every eight destinations is all that orders a block.
#pragma once

#include "backends/cuda/poly/device/transform.cuh"
#include "backends/cuda/poly/kernels/base_convert.cuh"
#include "backends/cuda/poly/tuning/convert_columns.h"

namespace crenel::backend::cuda {

struct ConvertColumnsArgs {
  ConvertArgs convert;
  const uint2* roots;  ///< forward, Shoup pairs, [prime][N / 16]
  LimbBytes prime;     ///< of every output limb from convert.first_limb on
};

/// What a block does with one tile, and where its words lie in shared memory.
template <u32 LogN, u32 Sources>
struct FusedTile {
  static constexpr u32 kBits = kColumnBits<LogN>, kRow = kRowBits<LogN>, kHigh = kBits - 4;
  static constexpr u32 kColumns = kFusedValues >> kBits;
  /// A warp makes sixteen values of four columns each for eight destinations, in so many turns.
  static constexpr u32 kTurns = kFusedValues / 64 / (kFusedThreads / 32);
  /// Gaps of words, so that neither operands, four sources, two rows and four columns apart, nor
  /// results, eight destinations and four columns apart, nor rows of the second round meet in a
  /// bank.
  static constexpr u32 kSourceStride = kFusedValues + 16 * 4 + 8;
  static constexpr u32 kResultStride = kFusedValues / 16 * 17 + 4;

  struct Stage {
    /// Bytes 0, 1 of all entries, then bytes 2, 3, as products take them: those of a source and of
    /// the fourth one after it together.
    uint2 entries[kFusedTogether][2][(Sources + 4) / 8][4][2];
    uint2 heap[kFusedTogether][(1u << kBits) + 2];
  };
  struct Memory {
    ConversionTarget targets[kFusedMaxOutputs];
    u32 primes[kFusedMaxOutputs];
    Stage stages[3];
    union {
      u32 sources[Sources * kSourceStride];
      u32 results[2][kFusedTogether * kResultStride];
    };
  };

  // Sums of slots are slots of sums: of a row below 2^kHigh, for results also of a multiple of 16
  // and what is below 16, and multiples of 2^kHigh.
  static __device__ __forceinline__ u32 source_slot(u32 row, u32 column) {
    return row * kColumns + column + (row >> kHigh) * 4;
  }
  static __device__ __forceinline__ u32 result_slot(u32 row, u32 column) {
    return (row + (row >> 4)) * kColumns + column;
  }
};

/// Starts bringing a tile of the sources, from `from` on.
template <class Tile, u32 LogN>
__device__ __forceinline__ void fetch_sources(u32* to, const u32* from, u32 sources) {
  constexpr u32 kChunks = Tile::kColumns / 4;
  const u32 row = threadIdx.x / kChunks, column = threadIdx.x % kChunks * 4;
  const u32* at = from + (row << Tile::kRow) + column;
  u32* slot = to + Tile::source_slot(row, column);
  for (u32 j = 0; j < sources; ++j)
    copy_async<16>(slot + j * Tile::kSourceStride, at + (u64(j) << LogN));
}

/// Starts bringing the entries and twiddles of destinations [first, first + 8) of `count`.
template <class Tile, u32 LogN, u32 Sources>
__device__ __forceinline__ void fetch_stage(typename Tile::Stage& stage,
                                            const typename Tile::Memory& memory,
                                            const ConvertColumnsArgs& args, const uint4* entries,
                                            u32 first, u32 count) {
  constexpr u32 kChunks = (1u << Tile::kBits) / 2, kTogether = kFusedThreads / kChunks;
  const u32 which = threadIdx.x / kChunks, at = threadIdx.x % kChunks * 2;
#pragma unroll
  for (u32 i = 0; i < kFusedTogether; i += kTogether) {
    if (first + i + which >= count) break;
    const uint2* from = args.roots + (u64(memory.primes[first + i + which]) << (LogN - 4)) + at;
    copy_async<16>(&stage.heap[i + which][at], from);
  }
  const u32 i = threadIdx.x / Sources, j = threadIdx.x % Sources;
  if (i >= kFusedTogether || first + i >= count) return;
  const uint2* entry = reinterpret_cast<const uint2*>(entries + (first + i) * Sources + j);
#pragma unroll
  for (u32 half = 0; half < 2; ++half)
    copy_async<8>(&stage.entries[i][half][j / 8][j % 4][j / 4 % 2], entry + half);
}

/// Grid: x tiles of columns, y (batch * components + component) * digits + digit, z groups of
/// args.convert.outputs destinations.
template <u32 LogN, u32 Sources>
__global__ void __launch_bounds__(kFusedThreads, 1)
    convert_columns(const __grid_constant__ ConvertColumnsArgs args) {
  begin_kernel();
  using Tile = FusedTile<LogN, Sources>;
  constexpr u32 kRow = Tile::kRow, kHigh = Tile::kHigh, kColumns = Tile::kColumns;
  constexpr u32 kTurns = Tile::kTurns, kHalf = kPerThread / 2;
  constexpr u32 kSteps = Sources / 4, kPairs = (kSteps + 1) / 2;
  extern __shared__ __align__(16) u32 words[];
  auto& memory = *reinterpret_cast<typename Tile::Memory*>(words);
  const ConvertArgs& convert = args.convert;
  const u32 digit = blockIdx.y % convert.digits, poly = blockIdx.y / convert.digits;
  const u32 b = poly / convert.components, c = poly % convert.components;
  const ConversionTable& table = convert.tables[digit];
  const u32 begin = table.destinations_below(convert.first_limb) + blockIdx.z * convert.outputs;
  const u32 end = min(begin + convert.outputs, table.destinations_below(convert.last_limb));
  if (begin >= end) return;
  const u32 count = end - begin, column = blockIdx.x * kColumns;
  fetch_sources<Tile, LogN>(memory.sources, convert.in.limb(b, c, table.first, LogN) + column,
                            table.sources);
  if (threadIdx.x < count) {
    const ConversionTarget target = convert.targets[table.target + begin + threadIdx.x];
    memory.targets[threadIdx.x] = target;
    memory.primes[threadIdx.x] = args.prime.at[target.position - convert.first_limb];
  }
  __syncthreads();
  const uint4* entries = convert.matrices + table.matrix + u64(begin) * Sources;
  const auto fetch = [&](u32 stage, u32 first) {
    fetch_stage<Tile, LogN, Sources>(memory.stages[stage], memory, args, entries, first, count);
  };
  const u32 steps = (count + kFusedTogether - 1) / kFusedTogether;
  const auto first_of = [&](u32 step) { return (steps - 1 - step) * kFusedTogether; };
  fetch(0, first_of(0));
  wait_for_copies();
  __syncthreads();

  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, row = lane / 4, quad = lane % 4;
  // Of turn i: row of the first value, column of the first of four.
  const auto first_row = [&](u32 i) { return (kTurns * warp + i) / (kColumns / 4); };
  const auto first_column = [&](u32 i) { return (kTurns * warp + i) % (kColumns / 4) * 4; };
  // The k-th product has value 2 k of the four columns in its even columns, 2 k + 1 in odd ones.
  u32 z[kTurns][kSteps][kHalf];
#pragma unroll
  for (u32 i = 0; i < kTurns; ++i) {
    const u32 value_row = first_row(i) + (row % 2 << kHigh);
    const u32 value_column = first_column(i) + row / 2;
#pragma unroll
    for (u32 s = 0; s < kSteps; ++s) {
      const u32 j = 4 * s + quad;
      const u32* from =
          memory.sources + j * Tile::kSourceStride + Tile::source_slot(value_row, value_column);
#pragma unroll
      for (u32 k = 0; k < kHalf; ++k)
        z[i][s][k] = j < table.sources ? from[Tile::source_slot(2 * k << kHigh, 0)] : 0;
    }
    if (table.shift != 0) {
      const u32* reciprocals = convert.reciprocals + table.reciprocal + quad;
      i64 sum[kHalf] = {};
      u32 rounded[kHalf];
#pragma unroll
      for (u32 s = 0; s < kSteps; ++s)
        if (4 * s < table.padded) add_quotient(sum, z[i][s], reciprocals[4 * s]);
      quotients(rounded, sum, table);
#pragma unroll
      for (u32 s = 0; s < kSteps; ++s)
#pragma unroll
        for (u32 k = 0; k < kHalf; ++k)
          if (4 * s + quad == table.sources) z[i][s][k] = rounded[k];
    }
  }
  __syncthreads();  // results take the place of sources

  // First rounds of a step, eight destinations. Steps go through them in descending order: the pass
  // over rows goes through limbs in ascending order, so it starts with what L2 still holds.
  const auto make = [&](u32 step, const typename Tile::Stage& stage) {
    const ConversionTarget target = memory.targets[min(first_of(step) + row, count - 1)];
    const SharedTwiddles twiddles = {stage.heap[row], target.q};
    const ByteSums start = ByteSums(target.offset).opaque();
#pragma unroll
    for (u32 i = 0; i < kTurns; ++i) {
      u32 x[kPerThread];
      uint4 low[kPairs], high[kPairs];
#pragma unroll
      for (u32 p = 0; p < kPairs; ++p) {
        low[p] = load4(reinterpret_cast<const u32*>(stage.entries[row][0][p][quad]));
        high[p] = load4(reinterpret_cast<const u32*>(stage.entries[row][1][p][quad]));
      }
#pragma unroll
      for (u32 k = 0; k < kHalf; ++k) {
        ByteSums sums = start;
#pragma unroll
        for (u32 p = 0; p < kSteps / 2; ++p)
          sums.add(z[i][2 * p][k], z[i][2 * p + 1][k], low[p], high[p]);
        if constexpr (kSteps % 2 == 1)
          sums.add(z[i][kSteps - 1][k], make_uint2(low[kPairs - 1].x, low[kPairs - 1].y),
                   make_uint2(high[kPairs - 1].x, high[kPairs - 1].y));
        x[2 * k] = sums.reduce(0, target.q, target.q_inv);
        x[2 * k + 1] = sums.reduce(1, target.q, target.q_inv);
      }
      forward_round<kHigh>(x, twiddles, 1, target.q);
      u32* to = memory.results[step % 2] + row * Tile::kResultStride +
                Tile::result_slot(first_row(i), first_column(i) + quad);
#pragma unroll
      for (u32 e = 0; e < kPerThread; ++e) to[Tile::result_slot(e << kHigh, 0)] = x[e];
    }
  };
  // Their second rounds.
  u32* const out = convert.out.limb(b, convert.digits > 1 ? digit : c, 0, LogN) + column;
  const auto finish = [&](u32 step, const typename Tile::Stage& stage) {
#pragma unroll
    for (u32 i = 0; i < kFusedTogether * kFusedValues / kPerThread / kFusedThreads; ++i) {
      constexpr u32 kThreads = kFusedValues / kPerThread;  // of a destination
      const u32 index = threadIdx.x + i * kFusedThreads, which = index / kThreads;
      if (first_of(step) + which >= count) break;
      const ConversionTarget& target = memory.targets[first_of(step) + which];
      const u32 at = index % kColumns, group = index % kThreads / kColumns, q = target.q;
      const u32* from = memory.results[step % 2] + which * Tile::kResultStride +
                        Tile::result_slot(16 * group, at);
      u32 x[kPerThread];
#pragma unroll
      for (u32 e = 0; e < kPerThread; ++e) x[e] = from[Tile::result_slot(e, 0)];
      forward_round<4>(x, SharedTwiddles{stage.heap[which], q}, (1u << kHigh) + group, q);
      u32* to =
          out + (u64(target.position - convert.first_limb) << LogN) + (group << (4 + kRow)) + at;
#pragma unroll
      for (u32 e = 0; e < kPerThread; ++e) to[e << kRow] = x[e];
    }
  };
  // Between two barriers the first rounds of a step and the second ones of the step before are
  // done, in either order: half of the warps of a scheduler take one, half the other, so that
  // products of matrices and butterflies keep their pipes busy at the same time.
  const bool late = warp / 4 % 2 == 1;
  u32 now = 0, before = 2;
  for (u32 step = 0; step < steps + late; ++step) {
    const u32 after = now == 2 ? 0 : now + 1;
    if (step < steps) {
      if (step + 1 < steps) fetch(after, first_of(step + 1));
      make(step, memory.stages[now]);
    }
    if (!late) {
      wait_for_copies();
      barrier();
    }
    if (step >= late) finish(step - late, memory.stages[late ? before : now]);
    if (late && step < steps) {
      wait_for_copies();
      barrier();
    }
    before = now, now = after;
  }
}

}  // namespace crenel::backend::cuda
