// The plan of baby steps and giant steps.
#pragma once

#include <span>
#include <vector>

#include "crenel/circuits/linear_transform.h"

namespace crenel::circuits {

/// Offsets k = stride (g baby_steps + b) modulo slots, 0 <= b < baby_steps: which b and which g
/// occur. The stride is the power of two that divides all offsets, or an odd multiple of it where
/// that is found to cost less.
struct Bsgs {
  u64 slots = 0;
  u64 stride = 1;
  u64 baby_steps = 1;
  std::vector<u64> babies;     ///< rotations stride * b modulo slots, b ascending
  std::vector<u64> giants;     ///< rotations stride * baby_steps * g modulo slots, g ascending
  std::vector<i64> rotations;  ///< that need keys, ascending
};

/// Of inputs, and of outputs: their product fits any number of rows of a batch.
inline constexpr u64 kMostBlocks = 4096;

/// Vectors that take all baby steps, and vectors that take all giant steps.
struct BlockCount {
  u64 inputs = 1, outputs = 1;
};

/// `baby_steps` 0: the power of two for which the steps cost least. Minimal keys make every step up
/// to the last one occur, because a step is reached from the one before.
Bsgs plan_bsgs(std::span<const u64> offsets, u64 slots, u64 baby_steps, KeyMode keys,
               const BlockCount& blocks = {});

}  // namespace crenel::circuits
