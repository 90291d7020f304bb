// Shapes of base conversion. Plain data, no CUDA.
#pragma once

#include "crenel/core/types.h"

namespace crenel::backend::cuda {

inline constexpr u32 kConvertWarps = 8;
/// Coefficients of one column, a multiple of four, and of a warp's eight columns.
inline constexpr u32 kConvertRun = 4;
inline constexpr u32 kConvertWarpValues = 8 * kConvertRun;
/// Sources whose sums of products of bytes stay exact: 4 * 64 * 255^2 (1 + 2^8) < 2^32.
inline constexpr u32 kConvertExact = 64;

/// Sources in registers: the next multiple of four; 0 beyond the last instance.
inline constexpr u32 kMaxConvertSources = 20;
constexpr u32 padded_sources(u32 sources) { return (sources + 3) / 4 * 4; }
constexpr u32 held_sources(u32 sources) {
  return sources <= kMaxConvertSources ? padded_sources(sources) : 0;
}
/// Resident blocks, by sources held.
constexpr u32 convert_blocks_per_sm(u32 held) { return held == 0 ? 2 : held <= 12 ? 4 : 3; }
template <u32 Sources>
inline constexpr u32 kConvertBlocksPerSm = convert_blocks_per_sm(Sources);

/// Destination limbs of a block, a multiple of kConvertTogether: many, because a block first brings
/// its sources, which costs about as much as kConvertSetup destinations; few enough that the blocks
/// fill the GPU evenly. `blocks` is the number of blocks with all destinations each.
inline constexpr u32 kConvertTogether = 8;
inline constexpr u32 kConvertMaxOutputs = 64;
inline constexpr u32 kConvertSetup = 8;
/// Destinations a block without Optimisation::conversion_shape.
inline constexpr u32 kConvertPlainOutputs = 16;
constexpr u32 convert_outputs(u32 blocks, u32 destinations, u32 resident_blocks,
                              u32 setup = kConvertSetup, u32 most = kConvertMaxOutputs) {
  u32 best = kConvertTogether;
  u64 best_cost = ~u64(0);
  for (u32 outputs = kConvertTogether; outputs <= most; outputs += kConvertTogether) {
    const u32 groups = (destinations + outputs - 1) / outputs;
    const u32 rounds = (blocks * groups + resident_blocks - 1) / resident_blocks;
    const u64 cost = u64(rounds) * (outputs + setup);
    if (cost < best_cost) best = outputs, best_cost = cost;
    if (outputs >= destinations) break;
  }
  return best;
}

}  // namespace crenel::backend::cuda
