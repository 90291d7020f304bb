// Arguments of base conversion with the column pass (kernels/convert_columns.cuh), and where what a
// block works on lies in shared memory.
#pragma once

#include "backends/cuda/cluster.cuh"
#include "backends/cuda/poly/device/conversion.cuh"
#include "backends/cuda/poly/device/tiled_sources.cuh"
#include "backends/cuda/poly/tuning/convert_columns.h"

namespace crenel::backend::cuda {

/// What blocks know of one conversion: parts of its ConversionTable.
struct ColumnDigit {
  u32 matrix, target, reciprocal;
  u8 first, sources, shift, padded;
  i64 rounding;
};

struct ConvertColumnsArgs {
  Poly<const u32> in;
  Poly<u32> out;
  const uint4* matrices;  ///< folded ones or ConvertArgs::matrices
  const ColumnTarget* targets;
  const u32* reciprocals;
  const uint2* roots;  ///< forward, Shoup pairs, [prime][N / 16]
  u32 digits;          ///< output component d belongs to digit d when there are several
  u32 components;      ///< of the input (1 when there are several digits)
  u32 first_limb;      ///< of the output, written at position 0
  u32 early;           ///< whether the launch after it may start when all blocks have
  u32 tiled;           ///< sources lie as TiledSources says
  u32 paired;          ///< 1: clusters of two blocks, which have one tile and items of one digit
  ColumnDigit digit[kFusedMaxDigits];
  ColumnItem item[kFusedMaxItems];
};

/// What a block does with one tile, and where its words lie in shared memory.
template <u32 LogN, u32 Sources, u32 Folded>
struct FusedTile {
  static constexpr u32 kBits = kColumnBits<LogN>, kRow = kRowBits<LogN>, kHigh = kBits - 4;
  static constexpr u32 kColumns = kFusedValues >> kBits;
  /// A warp makes sixteen values of four columns each for eight destinations, in so many turns.
  static constexpr u32 kTurns = kFusedValues / 64 / (kFusedThreads / 32);
  static constexpr u32 kSteps = Sources / 4, kPairs = (kSteps + 1) / 2;
  static constexpr u32 kMatrices = Folded == 0 ? 1 : Folded;
  /// Gaps of words, so that neither operands, four sources, two rows and four columns apart (see
  /// TiledSources), nor results, eight destinations and four columns apart, nor rows of the second
  /// round meet in a bank.
  static constexpr u32 kSourceStride = kFusedValues + 8;
  static constexpr u32 kResultStride = kFusedValues / 16 * 17 + 4;

  struct Stage {
    /// Bytes 0, 1 of all entries, then bytes 2, 3, as products take them: those of a source and of
    /// the fourth one after it together.
    uint4 entries[kMatrices][2][kPairs][kFusedTogether][4];
    uint2 heap[kFusedTogether][(1u << kBits) + 2];
  };
  /// What sums and their reductions start with.
  struct Target {
    u32 q, helper;  ///< q^-1 mod R, or kFloatExponent of folded conversions
    float scale, shift;
    uint4 start[kMatrices];
  };
  struct Memory {
    Target targets[kFusedMaxOutputs];
    const uint2* heaps[kFusedMaxOutputs];  ///< twiddles of its prime
    const uint4* entries;                  ///< of the first destination
    u32 positions[kFusedMaxOutputs];
    u32 reciprocals[Sources];  ///< where there is a rounded quotient
    Arrivals arrivals;         ///< of tiled sources
    Stage stages[3];
    union {
      alignas(16) u32 sources[Sources * kSourceStride];
      u32 results[2][kFusedTogether * kResultStride];
    };
  };

  // Sums of slots are slots of sums: for sources of any row and multiples of 2^(kHigh + 1), for
  // results of a row below 2^kHigh, also of a multiple of 16 and what is below 16, and multiples of
  // 2^kHigh.
  static __device__ __forceinline__ u32 source_slot(u32 row, u32 column) {
    return TiledSources<LogN>::slot(row, column);
  }
  static __device__ __forceinline__ u32 result_slot(u32 row, u32 column) {
    return (row + (row >> 4)) * kColumns + column;
  }
};

}  // namespace crenel::backend::cuda
