// Copies inside a split device, as copies inside its parts.
#pragma once

#include "backends/split/blocks.h"

namespace crenel::backend::split {

/// `rows` rows of `row_bytes` on one part.
struct Move {
  u8* to;
  const u8* from;
  u64 to_pitch, from_pitch, row_bytes, rows;
};

/// What each part has to copy for Stream::copy_rows, in few moves. StateError where source and
/// target are limbs of different primes, which lie on different parts.
std::vector<std::vector<Move>> moves_of(const Blocks& blocks, void* to, u64 to_pitch,
                                        const void* from, u64 from_pitch, u64 row_bytes, u64 rows);

}  // namespace crenel::backend::split
