// Orders in which the passes of an inverse transform leave what a conversion with the column pass
// reads, so that a block of it brings a limb's tile in one piece (dev/kernels/README.md, b41).
#pragma once

#include <bit>

#include "backends/cuda/poly/tuning/convert_columns.h"

namespace crenel::backend::cuda {

/// Between the passes: where the value of a row and column lies, in words of a limb. What a block
/// of the column pass reads, 2^log_columns columns, is in one piece, row by row; it leaves its
/// results there.
__host__ __device__ __forceinline__ u32 blocked_place(u32 log_columns, u32 row, u32 column) {
  const u32 block = column >> log_columns, inner = column & ((1u << log_columns) - 1);
  return 2 * kFusedValues * block + (row << log_columns) + inner;
}
/// log_columns.
constexpr u32 log_block_columns(u32 log_n) {
  return std::countr_zero(tile_columns(column_bits(log_n)));
}

/// After them. A block of the column pass has kTiles tiles of the conversion.
template <u32 LogN>
struct TiledSources {
  static constexpr u32 kBits = column_bits(LogN), kHigh = kBits - 4;
  static constexpr u32 kColumns = kFusedValues >> kBits, kTiles = 2;
  static_assert(tile_columns(kBits) == kTiles * kColumns);

  /// In a tile, row by row: the two halves of eight words change places in every other 2^kHigh
  /// rows, so that two rows as far apart and four columns are in different banks.
  static constexpr __host__ __device__ __forceinline__ u32 slot(u32 row, u32 column) {
    return row * kColumns + (column ^ (row >> kHigh & 1) << 2);
  }
  /// In a limb.
  static __host__ __device__ __forceinline__ u32 at(u32 row, u32 column) {
    return column / kColumns * kFusedValues + slot(row, column % kColumns);
  }
};

}  // namespace crenel::backend::cuda
