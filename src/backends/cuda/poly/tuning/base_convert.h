// Shapes of base conversion. Plain data, no CUDA.
#pragma once

#include "crenel/core/types.h"

namespace crenel::backend::cuda {

// Measured on one H200 (sm_90, CUDA 13.0), 2026-11-21, N = 2^16, alpha 12, by dev/kernels/sweep.sh,
// us of mod_up and mod_down at 48 | 24 limbs: 16 destinations a block 142.7 84.2 | 49.8 53.7, 24 of
// them 141.0 83.9 | 54.8 59.5, chosen by convert_outputs 125.8 79.4 | 48.3 50.8 (against 127.9 80.3
// | 50.9 53.4); 3 resident blocks 143.6 84.7, 5 (spills) 136.3 90.6 against 127.9 80.3.
inline constexpr u32 kConvertThreads = 256;
/// Resident blocks, by padded number of sources: they are held in registers.
constexpr u32 convert_blocks_per_sm(u32 sources) { return sources <= 12 ? 4 : 3; }
template <u32 Sources>
inline constexpr u32 kConvertBlocksPerSm = convert_blocks_per_sm(Sources);
/// A thread converts this many coefficients to this many destinations at a time: independent sums
/// that hide the latency of the multiply-adds.
inline constexpr u32 kConvertValues = 2;
inline constexpr u32 kConvertTogether = 4;
/// Destination limbs of a block, a multiple of kConvertTogether: many, because a block first brings
/// its sources and constants, which costs about as much as kConvertSetup destinations; few enough
/// that the blocks fill the GPU evenly. `blocks` is the number of blocks with all destinations
/// each.
inline constexpr u32 kConvertMaxOutputs = 48;
inline constexpr u32 kConvertSetup = 6;
/// Destinations a block without Optimisation::conversion_shape.
inline constexpr u32 kConvertPlainOutputs = 16;
constexpr u32 convert_outputs(u32 blocks, u32 destinations, u32 resident_blocks) {
  u32 best = kConvertTogether, best_cost = ~0u;
  for (u32 outputs = kConvertTogether; outputs <= kConvertMaxOutputs; outputs += kConvertTogether) {
    const u32 groups = (destinations + outputs - 1) / outputs;
    const u32 rounds = (blocks * groups + resident_blocks - 1) / resident_blocks;
    const u32 cost = rounds * (outputs + kConvertSetup);
    if (cost < best_cost) best = outputs, best_cost = cost;
    if (outputs >= destinations) break;
  }
  return best;
}
/// Sources are padded with zeros to the next instance; more than the last are converted in chunks.
inline constexpr u32 kConvertSources[] = {4, 8, 12, 16, 20};
inline constexpr u32 kMaxConvertSources = 20;

constexpr u32 padded_sources(u32 sources) {
  for (const u32 s : kConvertSources)
    if (sources <= s) return s;
  return (sources + 3) / 4 * 4;
}

}  // namespace crenel::backend::cuda
