// Shapes of the key switch. Plain data, no CUDA.
#pragma once

#include "crenel/core/types.h"

namespace crenel::backend::cuda::torus {

/// Input rows from which the tiled key switch is used: below, reading the rows that occur is less.
inline constexpr u32 kTiledSwitchRows = 64;
/// Largest base of it: with more rows a digit position than rows a block, most of a tile is not
/// used.
inline constexpr u32 kTiledSwitchBaseLog = 7;
/// Blocks a multiprocessor that the key switch is split for.
inline constexpr u32 kSwitchBlocksEach = 4;

}  // namespace crenel::backend::cuda::torus
