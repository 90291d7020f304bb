// Shapes of base conversion with the column pass of its results. Plain data, no CUDA.
#pragma once

#include "backends/cuda/poly/tuning/base_convert.h"
#include "backends/cuda/poly/tuning/ntt.h"

namespace crenel::backend::cuda {

/// Values of one limb that a block works on, its tile of columns: rows of eight words at least, a
/// sector. With eight destinations at a time it fills the registers and the shared memory of a
/// multiprocessor.
inline constexpr u32 kFusedValues = 2048;
inline constexpr u32 kFusedThreads = 512;
inline constexpr u32 kFusedTogether = kConvertTogether;
/// Destinations of a block at most.
inline constexpr u32 kFusedMaxOutputs = 64;
/// Sources (a multiple of four) with an instance; rings are listed in host/convert_columns.cu.
inline constexpr u32 kMaxFusedSources = 16;

/// Bringing the sources of a block costs about as much as so many destinations (convert_outputs).
inline constexpr u32 kFusedSetup = 5;

}  // namespace crenel::backend::cuda
