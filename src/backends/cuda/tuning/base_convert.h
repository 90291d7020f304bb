// Shapes of base conversion. Plain data, no CUDA.
#pragma once

#include "crenel/core/types.h"

namespace crenel::backend::cuda {

inline constexpr u32 kConvertThreads = 256;
inline constexpr u32 kConvertBlocksPerSm = 4;
/// A thread converts this many coefficients to this many destinations at a time: independent sums
/// that hide the latency of the multiply-adds.
inline constexpr u32 kConvertValues = 2;
inline constexpr u32 kConvertTogether = 4;
/// Destination limbs of a block, a multiple of kConvertTogether: the sources are read once for all
/// of them.
inline constexpr u32 kConvertOutputs = 16;
/// Sources are padded with zeros to the next instance; more than the last are converted in chunks.
inline constexpr u32 kConvertSources[] = {4, 8, 12, 16, 20};
inline constexpr u32 kMaxConvertSources = 20;

constexpr u32 padded_sources(u32 sources) {
  for (const u32 s : kConvertSources)
    if (sources <= s) return s;
  return (sources + 3) / 4 * 4;
}

}  // namespace crenel::backend::cuda
