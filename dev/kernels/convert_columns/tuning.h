// Shapes of base conversion fused with the first transform pass. Plain data, no CUDA.
#pragma once

#include "crenel/core/types.h"

namespace crenel::backend::cuda {

// Copied to src/backends/cuda/poly/tuning to be compared with the two kernels in its place:
//   dev/kernels/sweep.sh base
//     "tuning/convert_columns.h:s/kConvertColumns = true/kConvertColumns = false/"

/// Whether the fused kernel is used where it can be.
inline constexpr bool kConvertColumns = false;
/// Smallest ring: smaller ones would not fill the GPU with its large blocks.
inline constexpr u32 kConvertColumnsMinLogN = 15;

/// A thread holds 16 values of a column, a block whole columns.
inline constexpr u32 kConvertColumnsThreads = 128;
/// Blocks a multiprocessor, which bounds the registers: while one waits for its sources or at a
/// barrier, another one computes. Three fit where there are few sources.
template <bool Held>
inline constexpr u32 kConvertColumnsBlocksPerSm = Held ? 2 : 3;

/// Sources of a block in shared memory: 8 KiB each, so that two blocks fit. More of them, up to
/// kConvertColumnsHeld, are held in registers.
inline constexpr u32 kConvertColumnsShared = 12;
inline constexpr u32 kConvertColumnsHeld = 4;
inline constexpr u32 kConvertColumnsMaxSources = kConvertColumnsShared + kConvertColumnsHeld;

/// Destinations whose sums are formed together: a source value read serves all of them. Their sums
/// take 32 registers a destination.
inline constexpr u32 kConvertColumnsTogether = 4;
/// Destinations of a block, a multiple of kConvertColumnsTogether.
inline constexpr u32 kConvertColumnsMaxOutputs = 48;
/// What bringing the sources costs, in destinations.
inline constexpr u32 kConvertColumnsSetup = 2;

/// Groups that the destinations of a conversion are dealt to, one block each. The multiplier pipe
/// is the bound, so that what counts is the work of the busiest multiprocessor; a block that is
/// alone on it at the end takes about a third longer. `blocks` is the number of blocks of one
/// group.
constexpr u32 convert_columns_groups(u32 blocks, u32 destinations, u32 processors) {
  constexpr u32 kTogether = kConvertColumnsTogether;
  const u32 chunks = (destinations + kTogether - 1) / kTogether;
  u32 best = 0, best_cost = ~0u;
  for (u32 groups = 1; groups <= chunks; ++groups) {
    const u32 outputs = (chunks + groups - 1) / groups * kTogether;
    if (outputs > kConvertColumnsMaxOutputs) continue;
    const u32 rounds = (blocks * groups + processors - 1) / processors;
    const u32 cost = (3 * rounds + rounds % 2) * (outputs + kConvertColumnsSetup);
    if (cost < best_cost) best = groups, best_cost = cost;
  }
  return best;
}

}  // namespace crenel::backend::cuda
