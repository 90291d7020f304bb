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
/// The least ring with instances.
inline constexpr u32 kMinFusedLogN = 14;
/// Sources up to which registers suffice for the values of both turns of a warp together, and for
/// two columns a thread in the second round.
inline constexpr u32 kJointSources = 16, kWideSources = 12;
/// Digits and items of a launch at most.
inline constexpr u32 kFusedMaxDigits = 32, kFusedMaxItems = 128;

/// Matrices a conversion begins with (Tunable::folded_matrices): 4, or 2, of which the second one
/// is that of the upper half of a thread's values; 0 is one that is not folded.
inline constexpr u32 kFoldedMatrices = 4;
constexpr u32 folded_matrices(u64 wanted) { return wanted >= 4 ? 4 : wanted >= 2 ? 2 : 0; }

/// Whether its blocks may start while the pass before it ends (Tunable::conversion_early). A block
/// takes a whole multiprocessor, so none pile up on those that end first. Measured in
/// dev/kernels/README.md, b28.
inline constexpr u32 kConversionEarly = 1;

/// Bringing the sources of a block costs about as much as so many destinations (column_items).
inline constexpr u32 kFusedSetup = 6;

/// Eighths of a step's time that its products and first rounds take, whatever part of its
/// destinations is there: of 1,357 instructions of a warp some 500 are second rounds.
inline constexpr u32 kFusedProducts = 5;
/// Destinations that a block's share is a multiple of (Tunable::conversion_granule); 8 is whole
/// steps, which lose least where it matters: dev/kernels/README.md, b33.
inline constexpr u32 kFusedGranule = 8;

/// Whether two blocks that share their sources bring them together (Tunable::conversion_pairs), at
/// compute capability 9, where it was measured: dev/kernels/README.md, b41.
inline constexpr u32 kConversionPairs = 1;

/// Destinations that a block takes on: `count` of a digit from its `begin`-th on.
struct ColumnItem {
  u8 digit, begin, count;
};

}  // namespace crenel::backend::cuda
