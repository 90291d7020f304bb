// Which sums a transform of blocks makes of which input, and with which rotations.
#pragma once

#include <span>
#include <vector>

#include "circuits/linear_transform/bsgs.h"

namespace crenel::circuits {

/// By output, then by input; null where there is no block. Every row has as many.
using BlockPointers = std::vector<std::vector<const DiagonalMatrix*>>;

/// A sum of products: what it becomes part of, and the rotation that it gets before.
struct BlockRow {
  u32 output = 0;
  u64 giant = 0;
};

/// Rows are the accumulators of the outputs first (giant step 0), then those that are rotated, by
/// giant step and then by output: neighbours share a key.
struct BlockPlan {
  /// Rows and baby steps that meet: their products have a place for every pair of them.
  struct Part {
    std::vector<u32> rows, babies;  ///< numbers among those of the column
  };
  /// Of one input.
  struct Column {
    std::vector<u32> rows;  ///< of `BlockPlan::rows` to which it contributes, ascending
    std::vector<u64> babies;
    /// Every row once. All in one or, where most places of that would be empty, a few neighbouring
    /// rows each with the baby steps that they need.
    std::vector<Part> parts;
  };
  Bsgs steps;  ///< of the offsets of all blocks together
  u32 outputs = 1;
  std::vector<BlockRow> rows;
  std::vector<Column> columns;
  u64 diagonals = 0;  ///< of all blocks

  u32 inputs() const { return static_cast<u32>(columns.size()); }
  /// The rows of an output that some input contributes to.
  u64 sums_of(u32 output) const;
};

/// `offsets`: of all blocks. Hoisted, an input meets only the steps that its blocks use; minimal
/// steps are reached from one another, so that an output has all up to its last.
BlockPlan plan_blocks(const BlockPointers& blocks, std::span<const u64> offsets, u64 slots,
                      u64 baby_steps, KeyMode keys);

}  // namespace crenel::circuits
