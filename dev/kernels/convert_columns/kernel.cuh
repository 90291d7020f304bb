// Base conversion fused with the first stages of the forward transform: the converted limbs are
// never written in coefficient form.
//
// A block owns 8 columns of the sources, 256 rows each, in shared memory, and goes through some of
// the destinations. Conversion works on single points, so a thread converts just the 16 values that
// it starts the column pass with, for a few destinations at a time, and then runs the pass of each.
#pragma once

#include "backends/cuda/poly/device/conversion.cuh"
#include "backends/cuda/poly/device/transform.cuh"
#include "backends/cuda/poly/kernels/ntt_columns.cuh"
#include "backends/cuda/tuning/convert_columns.h"

namespace crenel::backend::cuda {

struct ConvertColumnsArgs {
  const PrimeConstants* primes;
  const ConversionTable* tables;  ///< one a digit
  const i32* matrices;
  const uint2* roots;  ///< as in TransformArgs
  Poly<const i32> in;  ///< centred
  Poly<u32> out;
  u32 digits;      ///< tables; output component d belongs to table d when there are several
  u32 components;  ///< of the input (1 when there are several digits)
  u32 first_limb;  ///< only output limbs [first_limb, last_limb), written from position 0 on
  u32 last_limb;
  u32 outputs;  ///< most destinations of a block
  u32 shared_sources;
};

/// What a block needs of a destination limb.
struct __align__(16) ColumnDestination {
  u32 q, q_inv;
  i32 r_centred;
  u16 position, prime;
};

// Tile of a block: a thread of group g converts and transforms the rows g + e 2^(Bits-4) of a
// column and, after the exchange, has 16 g + e. For the exchange some words more every 16 rows put
// the groups of a warp on different banks.
template <u32 LogN>
struct ConvertTile {
  static constexpr u32 kBits = kColumnBits<LogN>;
  static constexpr u32 kColumns = 16 * kConvertColumnsThreads >> kBits;
  static constexpr u32 kPad = kColumns < 32 ? kColumns : 0;
  static constexpr u32 kWords = kColumns << kBits;  ///< of a source
  static constexpr u32 kExchangeWords = kWords + (kPad << (kBits - 4));
  static constexpr u32 kHeapWords = 2u << kBits;
  static_assert(kBits <= 8);

  /// A thread's values of a source, from place threadIdx.x on.
  __device__ __forceinline__ static constexpr u32 value(u32 e) {
    return e * kConvertColumnsThreads;
  }
  /// The same in the exchange, from the same place on; then those of the second round.
  __device__ __forceinline__ static constexpr u32 split(u32 e) {
    return e * kConvertColumnsThreads + (e >> (8 - kBits)) * kPad;
  }
  __device__ __forceinline__ static u32 joined(u32 group, u32 lane) {
    return group * (16 * kColumns + kPad) + lane;
  }
};

/// Bytes of shared memory of a block: sources, exchange, two heaps of twiddles, matrix,
/// destinations. For rings of 2^16 points and more; smaller heaps of smaller ones change little.
constexpr u32 convert_columns_bytes(u32 shared_sources, u32 padded_sources, u32 outputs) {
  using Tile = ConvertTile<16>;
  const u32 words = shared_sources * Tile::kWords + Tile::kExchangeWords + 2 * Tile::kHeapWords +
                    outputs * padded_sources;
  return words * sizeof(u32) + outputs * sizeof(ColumnDestination);
}
inline constexpr u32 kConvertColumnsMostBytes = convert_columns_bytes(
    kConvertColumnsShared, kConvertColumnsMaxSources, kConvertColumnsMaxOutputs);

/// Lists of the destinations of a block in shared memory. All destinations are numbered from the
/// last limb down, so that the row pass, which goes up, begins with what L2 still holds; groups of
/// blocks take turns, kConvertColumnsTogether destinations a turn.
struct ColumnDestinations {
  static constexpr u32 kTogether = kConvertColumnsTogether;
  i32* matrix;  ///< [turn][source][kTogether], zero beyond the sources and destinations
  ColumnDestination* at;
  u32 padded;
  u32 count;

  __device__ __forceinline__ void fill(const ConvertColumnsArgs& args, const ConversionTable& table,
                                       u32 end) const {
    const i32* matrices = args.matrices + table.matrix;
    const auto limb = [&](u32 s) {
      const u32 turn = blockIdx.z + s / kTogether * gridDim.z;
      return end - 1 - (turn * kTogether + s % kTogether);
    };
    const u32 entries = (count + kTogether - 1) / kTogether * kTogether * padded;
    for (u32 k = threadIdx.x; k < entries; k += kConvertColumnsThreads) {
      const u32 j = k / kTogether % padded;
      const u32 s = k / (kTogether * padded) * kTogether + k % kTogether;
      matrix[k] = s < count ? matrices[limb(s) * padded + j] : 0;
    }
    if (threadIdx.x < count) {
      const u32 i = limb(threadIdx.x);
      const PrimeConstants& m = args.primes[table.prime.at[i]];
      at[threadIdx.x] = {m.q, m.q_inv, m.r_centred,
                         static_cast<u16>(table.position.at[i] - args.first_limb),
                         table.prime.at[i]};
    }
  }
};

// sum[t][e] += value[e] * k[t], all of a thread for one source.
__device__ __forceinline__ void add_source(i64 (&sum)[kConvertColumnsTogether][kPerThread],
                                           const i32* k, const i32 (&value)[kPerThread]) {
  const int4 m = *reinterpret_cast<const int4*>(k);
#pragma unroll
  for (u32 e = 0; e < kPerThread; ++e) {
    sum[0][e] = mad_wide(value[e], m.x, sum[0][e]);
    sum[1][e] = mad_wide(value[e], m.y, sum[1][e]);
    sum[2][e] = mad_wide(value[e], m.z, sum[2][e]);
    sum[3][e] = mad_wide(value[e], m.w, sum[3][e]);
  }
}

/// Grid: x tiles of columns, y (batch * components + component) * digits + digit, z groups of
/// destinations. Held: there are sources beyond those in shared memory.
template <u32 LogN, bool Held>
__global__ void __launch_bounds__(kConvertColumnsThreads, kConvertColumnsBlocksPerSm<Held>)
    convert_columns(const __grid_constant__ ConvertColumnsArgs args) {
  begin_kernel();
  using Tile = ConvertTile<LogN>;
  constexpr u32 Bits = Tile::kBits, kRow = kRowBits<LogN>, kHigh = Bits - 4;
  constexpr u32 kThreads = kConvertColumnsThreads, kTogether = kConvertColumnsTogether;
  extern __shared__ __align__(16) u32 shared[];
  const u32 digit = blockIdx.y % args.digits, poly = blockIdx.y / args.digits;
  const u32 b = poly / args.components, c = poly % args.components;
  const ConversionTable& table = args.tables[digit];
  const u32 begin = table.destinations_below(args.first_limb);
  const u32 end = table.destinations_below(args.last_limb);
  // Turns of this block; the last of all turns may be short.
  const u32 turns = (end - begin + kTogether - 1) / kTogether;
  if (blockIdx.z >= turns) return;
  const u32 own_turns = (turns - 1 - blockIdx.z) / gridDim.z + 1;
  const u32 last_turn = blockIdx.z + (own_turns - 1) * gridDim.z;
  const u32 left = end - begin - last_turn * kTogether;
  const u32 sources = table.sources, in_shared = min(sources, args.shared_sources);

  u32* tile = shared + args.shared_sources * Tile::kWords;
  uint2* heaps = reinterpret_cast<uint2*>(tile + Tile::kExchangeWords);
  i32* matrix = reinterpret_cast<i32*>(tile + Tile::kExchangeWords + 2 * Tile::kHeapWords);
  const ColumnDestinations destinations = {
      matrix, reinterpret_cast<ColumnDestination*>(matrix + args.outputs * table.padded),
      table.padded, (own_turns - 1) * kTogether + min(left, kTogether)};

  const u32 first_column = blockIdx.x * Tile::kColumns;
  const i32* from = args.in.limb(b, c, table.first, LogN) + first_column;
  constexpr u32 kPieces = Tile::kColumns / 4;  // of 16 bytes, in a row of the tile
  for (u32 j = 0; j < in_shared; ++j) {
#pragma unroll
    for (u32 k = 0; k < 4; ++k) {
      const u32 piece = k * kThreads + threadIdx.x;
      copy_async(shared + j * Tile::kWords + 4 * piece,
                 reinterpret_cast<const u32*>(from + (u64(j) << LogN) + (piece / kPieces << kRow) +
                                              piece % kPieces * 4));
    }
  }
  const u32 lane = threadIdx.x % Tile::kColumns, group = threadIdx.x / Tile::kColumns;
  i32 held[kConvertColumnsHeld][kPerThread];
  if constexpr (Held) {
#pragma unroll
    for (u32 h = 0; h < kConvertColumnsHeld; ++h) {
      const u32 j = kConvertColumnsShared + h;
      const i32* limb = from + (u64(j) << LogN) + (group << kRow) + lane;
#pragma unroll
      for (u32 e = 0; e < kPerThread; ++e) held[h][e] = j < sources ? limb[e << (kHigh + kRow)] : 0;
    }
  }
  destinations.fill(args, table, end);
  __syncthreads();
  const auto fetch = [&](u32 s) {
    const ColumnDestination& m = destinations.at[s];
    return fetch_column_twiddles<Bits>(heaps + (s % 2 << Bits),
                                       {args.roots + (u64(m.prime) << (LogN - 4)), m.q});
  };
  fetch(0);
  wait_for_copies();
  __syncthreads();

  u32* to = args.out.limb(b, args.digits > 1 ? digit : c, 0, LogN) + first_column + lane;
  const i32* own = reinterpret_cast<const i32*>(shared) + threadIdx.x;
  for (u32 s = 0; s < destinations.count;) {
    i64 sum[kTogether][kPerThread] = {};
    const i32* row = matrix + s * destinations.padded;
    // In pairs: three-operand additions then serve two products each. The second one of the last
    // pair may be a zero constant times anything.
#pragma unroll 2
    for (u32 j = 0; j < in_shared; j += 2) {
#pragma unroll
      for (u32 k = 0; k < 2; ++k) {
        i32 value[kPerThread];
#pragma unroll
        for (u32 e = 0; e < kPerThread; ++e)
          value[e] = own[(j + k) * Tile::kWords + Tile::value(e)];
        add_source(sum, row + (j + k) * kTogether, value);
      }
    }
    if constexpr (Held) {
#pragma unroll
      for (u32 h = 0; h < kConvertColumnsHeld; h += 2) {
        const u32 j = kConvertColumnsShared + h;
        if (j >= sources) break;
        add_source(sum, row + j * kTogether, held[h]);
        add_source(sum, row + (j + 1) * kTogether, held[h + 1]);
      }
    }
    u32 x[kTogether][kPerThread];
#pragma unroll
    for (u32 t = 0; t < kTogether; ++t) {
      const ColumnDestination m = destinations.at[min(s + t, destinations.count - 1)];
#pragma unroll
      for (u32 e = 0; e < kPerThread; ++e)
        x[t][e] = mont_reduce_signed(sum[t][e], m.r_centred, m.q, m.q_inv);
    }
    const u32 stop = min(s + kTogether, destinations.count);
#pragma unroll 1
    for (; s < stop; ++s) {
      const u32 q = destinations.at[s].q;
      const SharedTwiddles twiddles = {heaps + (s % 2 << Bits), q};
      wait_for_copies();
      __syncthreads();  // the twiddles are there; nobody reads the tile or the other heap any more
      if (s + 1 < destinations.count) fetch(s + 1);
      forward_round<kHigh>(x[0], twiddles, 1, q);
#pragma unroll
      for (u32 e = 0; e < kPerThread; ++e) tile[threadIdx.x + Tile::split(e)] = x[0][e];
      __syncthreads();
      u32 y[kPerThread];
#pragma unroll
      for (u32 e = 0; e < kPerThread; ++e)
        y[e] = tile[Tile::joined(group, lane) + e * Tile::kColumns];
      forward_round<4>(y, twiddles, (1u << kHigh) + group, q);
      u32* limb = to + (u64(destinations.at[s].position) << LogN) + (group << (4 + kRow));
#pragma unroll
      for (u32 e = 0; e < kPerThread; ++e) limb[e << kRow] = y[e];
      // The next destination becomes the first: one copy of the code above, not four.
#pragma unroll
      for (u32 t = 0; t + 1 < kTogether; ++t)
#pragma unroll
        for (u32 e = 0; e < kPerThread; ++e) x[t][e] = x[t + 1][e];
    }
  }
}

}  // namespace crenel::backend::cuda
