// Shapes of the element-wise kernels. Plain data, no CUDA.
#pragma once

#include "crenel/core/types.h"

namespace crenel::backend::cuda {

inline constexpr u32 kElementThreads = 256;
/// Groups of four values that a thread handles, loaded before the first is used.
inline constexpr u32 kElementUnroll = 2;
/// Gadget digits whose loads are in flight together in key_multiply.
inline constexpr u32 kKeyDigitsInFlight = 4;

}  // namespace crenel::backend::cuda
