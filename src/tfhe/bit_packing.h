// Words of a few bits, one behind the other: word i at bits [i bits, (i + 1) bits) of the bytes,
// lowest bit first.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "crenel/core/types.h"

namespace crenel::tfhe {

static_assert(std::endian::native == std::endian::little);  // words are copied as bytes

constexpr u64 packed_bytes(u64 words, u32 bits) { return (words * bits + 7) / 8; }

/// Bits of a residue of any of these primes.
inline u32 residue_bits(std::span<const u64> primes) {
  return static_cast<u32>(std::bit_width(*std::max_element(primes.begin(), primes.end()) - 1));
}

/// Words below 2^bits, bits at most 32, into packed_bytes(words.size(), bits) bytes.
inline void pack_bits(std::span<const u32> words, u32 bits, u8* to) {
  u64 held = 0;
  u32 count = 0;  // below 32 between words
  for (const u32 word : words) {
    held |= u64(word) << count;
    count += bits;
    if (count < 32) continue;
    const u32 low = static_cast<u32>(held);
    std::memcpy(to, &low, sizeof(low));
    to += sizeof(low);
    held >>= 32;
    count -= 32;
  }
  std::memcpy(to, &held, (count + 7) / 8);
}

/// The reverse.
inline void unpack_bits(const u8* from, u32 bits, std::span<u32> words) {
  u64 held = 0;
  u32 count = 0;
  u64 left = packed_bytes(words.size(), bits);
  const u64 mask = (u64(1) << bits) - 1;
  for (u32& word : words) {
    if (count < bits) {
      u32 next = 0;
      const u64 bytes = std::min<u64>(left, sizeof(next));
      std::memcpy(&next, from, bytes);
      from += bytes;
      left -= bytes;
      held |= u64(next) << count;
      count += static_cast<u32>(8 * bytes);
    }
    word = static_cast<u32>(held & mask);
    held >>= bits;
    count -= bits;
  }
}

}  // namespace crenel::tfhe
