// Words of a few bits, one behind the other: word i at bits [i bits, (i + 1) bits) of the bytes,
// lowest bit first.
#pragma once

#include <span>

#include "crenel/core/types.h"

namespace crenel::tfhe {

constexpr u64 packed_bytes(u64 words, u32 bits) { return (words * bits + 7) / 8; }

/// Words below 2^bits, bits at most 32, into packed_bytes(words.size(), bits) bytes.
inline void pack_bits(std::span<const u32> words, u32 bits, u8* to) {
  u64 held = 0;
  u32 count = 0;
  for (const u32 word : words) {
    held |= u64(word) << count;
    for (count += bits; count >= 8; count -= 8, held >>= 8) *to++ = static_cast<u8>(held);
  }
  if (count > 0) *to = static_cast<u8>(held);
}

/// The reverse.
inline void unpack_bits(const u8* from, u32 bits, std::span<u32> words) {
  u64 held = 0;
  u32 count = 0;
  const u64 mask = (u64(1) << bits) - 1;
  for (u32& word : words) {
    for (; count < bits; count += 8) held |= u64(*from++) << count;
    word = static_cast<u32>(held & mask);
    held >>= bits;
    count -= bits;
  }
}

}  // namespace crenel::tfhe
