// Shapes of base conversion with the column pass of its results. Plain data, no CUDA.
#pragma once

#include "backends/cuda/poly/tuning/ntt.h"

namespace crenel::backend::cuda {

/// Values of one limb that a block works on, its tile of columns: rows of eight words at least, a
/// sector. With eight destinations at a time it fills the registers and the shared memory of a
/// multiprocessor.
inline constexpr u32 kFusedValues = 2048;
inline constexpr u32 kFusedThreads = 512;
inline constexpr u32 kFusedTogether = 8;
/// Destinations of a block at most.
inline constexpr u32 kFusedMaxOutputs = 64;
/// Ring sizes and sources (a multiple of four) with an instance.
inline constexpr u32 kMinFusedLogN = 14, kMaxFusedSources = 16;

/// Destinations of a block, so that the blocks fill the GPU evenly: bringing the sources costs about
/// as much as kFusedSetup destinations. `blocks`: with all destinations each.
inline constexpr u32 kFusedSetup = 5;
constexpr u32 fused_outputs(u32 blocks, u32 destinations, u32 processors) {
  u32 best = kFusedTogether, best_cost = ~0u;
  for (u32 outputs = kFusedTogether; outputs <= kFusedMaxOutputs; outputs += kFusedTogether) {
    const u32 parts = (destinations + outputs - 1) / outputs;
    const u32 rounds = (blocks * parts + processors - 1) / processors;
    const u32 cost = rounds * (outputs + kFusedSetup);
    if (cost < best_cost) best = outputs, best_cost = cost;
    if (outputs >= destinations) break;
  }
  return best;
}

}  // namespace crenel::backend::cuda
