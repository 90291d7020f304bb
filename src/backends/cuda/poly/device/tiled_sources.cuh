// The order in which an inverse transform leaves what a conversion with the column pass reads.
#pragma once

#include "backends/cuda/poly/tuning/convert_columns.h"

namespace crenel::backend::cuda {

/// Where values lie, in words of a limb. A block of the last pass has the columns of two tiles of
/// the conversion: each takes half of its rows, with two of its own in each, so that what a block
/// of the conversion brings lies in pieces twice as long (dev/kernels/README.md, b39).
template <u32 LogN>
struct TiledSources {
  static constexpr u32 kBits = column_bits(LogN), kRow = row_bits(LogN);
  static constexpr u32 kColumns = kFusedValues >> kBits, kTiles = 2;
  static_assert(tile_columns(kBits) == kTiles * kColumns);

  static __host__ __device__ __forceinline__ u32 at(u32 row, u32 column) {
    const u32 inner = column % (kTiles * kColumns), tile = inner / kColumns;
    return (((tile << kBits) / kTiles + row / kTiles) << kRow) + (column - inner) +
           row % kTiles * kColumns + inner % kColumns;
  }
};

}  // namespace crenel::backend::cuda
