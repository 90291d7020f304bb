// Base conversion and the column pass of what it makes, in one launch: converted limbs are never
// written between the two.
//
// A block keeps the sources of a tile of columns in registers, as operands of the matrix units
// (base_convert.cuh), and goes through its destinations eight at a time. Which coefficient a column
// of such a product stands for is free: they are laid so that what a thread gets of a destination
// are the sixteen values, one every 2^(Bits - 4) rows, on which its first round of butterflies
// works. Each quarter of them may have a matrix of its own, so that twiddles of the first two
// stages are folded into the entries (device/folded.cuh). One exchange through shared memory, and
// the second round ends the pass. Two exchanges take turns, so that a barrier for every eight
// destinations is all that orders a block.
#pragma once

#include "backends/cuda/poly/device/column_tile.cuh"
#include "backends/cuda/poly/device/transform.cuh"
#include "backends/cuda/poly/kernels/base_convert.cuh"

namespace crenel::backend::cuda {

/// One block at work: `count` destinations of one digit from the `begin`-th on, in steps of eight.
/// Steps go through them in descending order: the pass over rows goes through limbs in ascending
/// order, so it starts with what L2 still holds.
template <u32 LogN, u32 Sources, u32 Folded>
struct FusedBlock {
  using Tile = FusedTile<LogN, Sources, Folded>;
  using Memory = typename Tile::Memory;
  using Stage = typename Tile::Stage;
  static constexpr u32 kRow = Tile::kRow, kHigh = Tile::kHigh, kColumns = Tile::kColumns;
  static constexpr u32 kTurns = Tile::kTurns, kHalf = kPerThread / 2;
  /// Words of 16 bytes of a destination's matrices in memory.
  static constexpr u32 kWords = Folded ? folded_words(Sources) : Sources;
  static constexpr u32 kSteps = Tile::kSteps, kPairs = Tile::kPairs, kMatrices = Tile::kMatrices;
  /// Operands: the k-th product has value 2 k of the four columns of a turn in its even columns,
  /// 2 k + 1 in odd ones.
  using Values = u32[kTurns][kSteps][kHalf];

  const ConvertColumnsArgs& args;
  const ColumnDigit& table;
  Memory& memory;
  u32 begin, count;
  u32 warp = threadIdx.x / 32, row = threadIdx.x % 32 / 4, quad = threadIdx.x % 4;

  __device__ __forceinline__ u32 steps() const {
    return (count + kFusedTogether - 1) / kFusedTogether;
  }
  __device__ __forceinline__ u32 first_of(u32 step) const {
    return (steps() - 1 - step) * kFusedTogether;
  }
  // Of turn i: row of the first value, column of the first of four.
  __device__ __forceinline__ u32 first_row(u32 i) const {
    return (kTurns * warp + i) / (kColumns / 4);
  }
  __device__ __forceinline__ u32 first_column(u32 i) const {
    return (kTurns * warp + i) % (kColumns / 4) * 4;
  }

  /// Starts bringing the block's tile of the sources.
  __device__ __forceinline__ void fetch_sources(const u32* from, u32 tile) const {
    if (args.tiled != 0) return fetch_tiles(from + tile * kFusedValues);
    constexpr u32 kChunks = kColumns / 4;
    const u32 at_row = threadIdx.x / kChunks, column = threadIdx.x % kChunks * 4;
    const u32 slot = Tile::source_slot(at_row, column);
    const u32* at = from + ((at_row << kRow) + tile * kColumns + column);
    for (u32 j = 0; j < table.sources; ++j)
      copy_async<16>(memory.sources + slot + j * Tile::kSourceStride, at + (u64(j) << LogN));
  }
  /// In one piece each; of two blocks with the same ones, each brings every other one for both.
  __device__ __forceinline__ void fetch_tiles([[maybe_unused]] const u32* from) const {
#if CRENEL_CLUSTERS
    constexpr u32 kBytes = kFusedValues * sizeof(u32);
    const u32 j = threadIdx.x;
    if (j == 0) expect_bytes(memory.arrivals, table.sources * kBytes);
    if (j >= table.sources) return;
    u32* to = memory.sources + j * Tile::kSourceStride;
    from += u64(j) << LogN;
    if (args.paired == 0)
      copy_whole(to, from, kBytes, memory.arrivals);
    else if (j % 2 == cluster_rank())
      copy_to_both(to, from, kBytes, memory.arrivals);
#endif
  }
  __device__ __forceinline__ void wait_for_sources() const {
    wait_for_copies();
    __syncthreads();
#if CRENEL_CLUSTERS
    if (args.tiled != 0) wait_for_bytes(memory.arrivals);
#endif
  }

  /// What the block knows of its destinations, and of the rounded quotient.
  __device__ __forceinline__ void load_targets() const {
    if (threadIdx.x < Sources && table.shift != 0 && threadIdx.x < table.padded)
      memory.reciprocals[threadIdx.x] = args.reciprocals[table.reciprocal + threadIdx.x];
    if (threadIdx.x >= count) return;
    const ColumnTarget& from = args.targets[table.target + begin + threadIdx.x];
    auto& to = memory.targets[threadIdx.x];
    to.q = from.q, to.helper = Folded ? kFloatExponent : from.q_inv;
    to.scale = from.scale, to.shift = from.shift;
#pragma unroll
    for (u32 m = 0; m < kMatrices; ++m) {
      const u32 start = Folded ? from.start[m * kQuarters / kMatrices] : from.offset;
      to.start[m] = make_uint4(start, start, 0, 0);
    }
    memory.positions[threadIdx.x] = from.position;
    memory.heaps[threadIdx.x] = args.roots + (u64(from.prime) << (LogN - 4));
    if (threadIdx.x == 0) memory.entries = args.matrices + table.matrix + u64(begin) * kWords;
  }

  /// Starts bringing entries and twiddles of the eight destinations from `first` on, those of the
  /// last one in place of any beyond.
  __device__ __forceinline__ void fetch_stage(Stage& stage, u32 first) const {
    constexpr u32 kChunks = (1u << Tile::kBits) / 2, kTogether = kFusedThreads / kChunks;
    const u32 which = threadIdx.x / kChunks, at = threadIdx.x % kChunks * 2;
#pragma unroll
    for (u32 i = 0; i < kFusedTogether; i += kTogether)
      copy_async<16>(&stage.heap[i + which][at],
                     memory.heaps[min(first + i + which, count - 1)] + at);
    fetch_entries(stage, first);
  }
  __device__ __forceinline__ void fetch_entries(Stage& stage, u32 first) const {
    constexpr u32 kEach = Folded ? kWords / kQuarters : kWords, kBrought = kEach * kMatrices;
    const u32 i = threadIdx.x / kBrought, j = threadIdx.x % kBrought;
    if (kBrought * kFusedTogether < kFusedThreads && i >= kFusedTogether) return;
    const uint4* from = memory.entries + min(first + i, count - 1) * kWords;
    if constexpr (Folded) {
      copy_async<16>(&stage.entries[0][0][0][0][0] + j / 4 * kFusedTogether * 4 + i * 4 + j % 4,
                     from + j / kEach * (kQuarters / kMatrices) * kEach + j % kEach);
    } else {
      const uint2* halves = reinterpret_cast<const uint2*>(from + j);
#pragma unroll
      for (u32 half = 0; half < 2; ++half)
        copy_async<8>(
            reinterpret_cast<uint2*>(&stage.entries[0][half][j / 8][i][j % 4]) + j / 4 % 2,
            halves + half);
    }
  }

  /// Sources as operands; where conversion is exact, with the quotients as one source more.
  __device__ __forceinline__ void load(Values& z) const {
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
      if (table.shift != 0) add_rounded(z[i]);
    }
  }
  __device__ __forceinline__ void add_rounded(u32 (&z)[kSteps][kHalf]) const {
    const u32* reciprocals = memory.reciprocals + quad;
    i64 sum[kHalf] = {};
    u32 rounded[kHalf];
#pragma unroll
    for (u32 s = 0; s < kSteps; ++s)
      if (4 * s < table.padded) add_quotient(sum, z[s], reciprocals[4 * s]);
    quotients(rounded, sum, table);
#pragma unroll
    for (u32 s = 0; s < kSteps; ++s)
#pragma unroll
      for (u32 k = 0; k < kHalf; ++k)
        if (4 * s + quad == table.sources) z[s][k] = rounded[k];
  }

  /// Turns whose values are made together, from one load of entries and twiddles: as registers
  /// allow.
  static constexpr u32 kJoint = Sources <= kJointSources ? kTurns : 1;

  /// Sixteen values of the thread's column and destination for kJoint turns from z on.
  __device__ __forceinline__ void convert(u32 (&x)[kJoint][kPerThread],
                                          const u32 (*z)[kSteps][kHalf], const Stage& stage,
                                          const typename Tile::Target& target) const {
#pragma unroll
    for (u32 m = 0; m < kMatrices; ++m) {
      uint4 low[kPairs], high[kPairs];
#pragma unroll
      for (u32 p = 0; p < kPairs; ++p)
        low[p] = stage.entries[m][0][p][row][quad], high[p] = stage.entries[m][1][p][row][quad];
      const ByteSums start(target.start[m]);
#pragma unroll
      for (u32 n = 0; n < kJoint * kHalf / kMatrices; ++n) {
        const u32 i = n / (kHalf / kMatrices), k = m * kHalf / kMatrices + n % (kHalf / kMatrices);
        ByteSums sums = start;
#pragma unroll
        for (u32 p = 0; p + 1 < kPairs + (kSteps % 2 == 0); ++p)
          sums.add(z[i][2 * p][k], z[i][2 * p + 1][k], low[p], high[p]);
        if constexpr (kSteps % 2 == 1)
          sums.add(z[i][kSteps - 1][k], make_uint2(low[kPairs - 1].x, low[kPairs - 1].y),
                   make_uint2(high[kPairs - 1].x, high[kPairs - 1].y));
#pragma unroll
        for (u32 c = 0; c < 2; ++c)
          x[i][2 * k + c] =
              Folded ? sums.reduce(c, target.scale, target.shift, target.q, target.helper)
                     : sums.reduce(c, target.q, target.helper);
      }
    }
  }

  /// Conversion and first rounds of a step.
  __device__ __forceinline__ void make(u32 step, const Stage& stage, const Values& z) const {
    const auto& target = memory.targets[min(first_of(step) + row, count - 1)];
    const u32 q = target.q;
    const SharedTwiddles twiddles = {stage.heap[row], q};
#pragma unroll
    for (u32 i = 0; i < kTurns; i += kJoint) {
      u32 x[kJoint][kPerThread];
      convert(x, z + i, stage, target);
      if constexpr (Folded)
        folded_round<kHigh, Folded>(x, twiddles, q);
      else
        forward_rounds<kHigh>(x, twiddles, 1, q);
#pragma unroll
      for (u32 j = 0; j < kJoint; ++j) {
        u32* to = memory.results[step % 2] + row * Tile::kResultStride +
                  Tile::result_slot(first_row(i + j), first_column(i + j) + quad);
#pragma unroll
        for (u32 e = 0; e < kPerThread; ++e) to[Tile::result_slot(e << kHigh, 0)] = x[j][e];
      }
    }
  }

  /// Second rounds of a step, to `out`: kWide columns of a destination a thread, with the same
  /// twiddles, in one turn or two.
  __device__ __forceinline__ void finish(u32 step, const Stage& stage, u32* out) const {
    constexpr u32 kWide = Sources <= kWideSources ? 2 : 1;
    constexpr u32 kThreads = kFusedValues / kPerThread / kWide;  // of a destination
#pragma unroll
    for (u32 i = 0; i < kFusedTogether * kThreads / kFusedThreads; ++i) {
      const u32 index = threadIdx.x + i * kFusedThreads, which = index / kThreads;
      const u32 destination = first_of(step) + which;
      if (destination >= count) break;
      const u32 q = memory.targets[destination].q;
      const u32 at = index % (kColumns / kWide) * kWide;
      const u32 group = index % kThreads / (kColumns / kWide);
      const u32* from = memory.results[step % 2] + which * Tile::kResultStride +
                        Tile::result_slot(16 * group, at);
      u32 x[kWide][kPerThread];
#pragma unroll
      for (u32 e = 0; e < kPerThread; ++e) {
        if constexpr (kWide == 1) {
          x[0][e] = from[Tile::result_slot(e, 0)];
        } else {
          const uint2 v = load2(from + Tile::result_slot(e, 0));
          x[0][e] = v.x, x[1][e] = v.y;
        }
      }
      forward_rounds<4>(x, SharedTwiddles{stage.heap[which], q}, (1u << kHigh) + group, q);
      const u32 limb = memory.positions[destination] - args.first_limb;
      u32* to = out + (u64(limb) << LogN) + (group << (4 + kRow)) + at;
#pragma unroll
      for (u32 e = 0; e < kPerThread; ++e) {
        if constexpr (kWide == 1)
          to[e << kRow] = x[0][e];
        else
          store2(to + (e << kRow), make_uint2(x[0][e], x[1][e]));
      }
    }
  }
};

/// Grid: x tiles of columns, y batch * components + component, z items: some destinations of one
/// digit each. Paired: x tiles and one of two items, z pairs of items.
template <u32 LogN, u32 Sources, u32 Folded>
__global__ void __launch_bounds__(kFusedThreads, 1)
    convert_columns(const __grid_constant__ ConvertColumnsArgs args) {
  using Block = FusedBlock<LogN, Sources, Folded>;
  auto& memory = *reinterpret_cast<typename Block::Memory*>(block_memory());
  const u32 tile = blockIdx.x >> args.paired;
  const ColumnItem item = args.item[(blockIdx.z << args.paired) + (blockIdx.x & args.paired)];
  const ColumnDigit& table = args.digit[item.digit];
  const Block block = {args, table, memory, item.begin, item.count};
#if CRENEL_CLUSTERS
  if (threadIdx.x == 0) begin_arrivals(memory.arrivals);
#endif
  block.load_targets();  // tables, which no kernel writes
  if (args.paired != 0)
    cluster_sync();  // the other block's memory may be written
  else
    __syncthreads();
  block.fetch_stage(memory.stages[0], block.first_of(0));
  begin_kernel();
  if (args.early != 0) release_next();
  const u32 b = blockIdx.y / args.components, c = blockIdx.y % args.components;
  block.fetch_sources(args.in.limb(b, c, table.first, LogN), tile);
  block.wait_for_sources();
  typename Block::Values z;
  block.load(z);
  __syncthreads();  // results take the place of sources

  // Between two barriers the first rounds of a step and the second ones of the step before are
  // done, in either order: half of the warps of a scheduler take one, half the other, so that
  // products of matrices and butterflies keep their pipes busy at the same time.
  u32* const out =
      args.out.limb(b, args.digits > 1 ? item.digit : c, 0, LogN) + tile * Block::kColumns;
  const u32 steps = block.steps();
  const bool late = block.warp / 4 % 2 == 1;
  u32 now = 0, before = 2;
  for (u32 step = 0; step < steps + late; ++step) {
    const u32 after = now == 2 ? 0 : now + 1;
    if (step < steps) {
      if (step + 1 < steps) block.fetch_stage(memory.stages[after], block.first_of(step + 1));
      block.make(step, memory.stages[now], z);
    }
    if (!late) {
      wait_for_copies();
      barrier();
    }
    // one place, so that the code is there once
    if (step >= late) block.finish(step - late, memory.stages[late ? before : now], out);
    if (late && step < steps) {
      wait_for_copies();
      barrier();
    }
    before = now, now = after;
  }
}

}  // namespace crenel::backend::cuda
