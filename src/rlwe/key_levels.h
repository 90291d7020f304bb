// Levels that keys, tables and polynomials know beside the ordinary ones; each is one number, so
// that a rescale goes to the number before it. No ciphertext that a user sees has one.
#pragma once

#include <algorithm>

#include "rlwe/keys.h"

namespace crenel::rlwe {

/// A bootstrap whose result is wanted at a low level needs few of the normal primes. Short level
/// (base, l) has the primes of the normal level `base` and those that level l has above the normal
/// ones; l is the normal top level itself for the foot of the ladder, whose primes are those of
/// `base` (docs/theory/bootstrapping.md, "Fewer levels").
inline constexpr u32 kShortLevel = u32{1} << 16;
constexpr u32 short_level(u32 base, u32 level) { return kShortLevel | base << 8 | level; }
constexpr bool is_short(u32 level) { return level >> 16 == 1; }
constexpr u32 base_of(u32 short_level) { return short_level >> 8 & 0xff; }

/// Aligned level l has the primes of the ordinary level l, whose window begins where those of the
/// aligned levels do; digits of key switching are blocks that begin there, too, and not cut by it
/// (Chain::aligned, docs/theory/ckks-primes.md, "Aligned digits").
inline constexpr u32 kAlignedLevel = u32{1} << 17;
constexpr u32 aligned_level(u32 level) { return kAlignedLevel | level; }
constexpr bool is_aligned(u32 level) { return level >> 17 == 1; }

/// The level that it is short of, or has the primes of; or the level itself.
constexpr u32 ordinary(u32 level) {
  return is_short(level) ? level & 0xff : is_aligned(level) ? level & 0xffff : level;
}
/// The highest ordinary level that keys for `level` serve.
constexpr u32 highest_ordinary(u32 level) {
  return is_short(level) ? base_of(level) : ordinary(level);
}

/// Whether keys made for the levels up to `key`, SwitchKey::kAny for all, serve `level`: aligned
/// ones the aligned levels, and no other key does.
constexpr bool serves(u32 key, u32 level) {
  if (is_aligned(key) || is_aligned(level))
    return is_aligned(key) && is_aligned(level) && key >= level;
  if (key == SwitchKey::kAny) return true;
  if (!is_short(key)) return key >= ordinary(level);
  if (!is_short(level)) return level <= base_of(key);
  return base_of(key) >= base_of(level) && ordinary(key) >= ordinary(level);
}

/// The least level whose keys serve both, which are aligned or not alike.
constexpr u32 both(u32 a, u32 b) {
  if (serves(a, b)) return a;
  if (serves(b, a)) return b;
  if (is_short(a) && is_short(b))
    return short_level(std::max(base_of(a), base_of(b)), std::max(ordinary(a), ordinary(b)));
  return std::max(ordinary(a), ordinary(b));
}

}  // namespace crenel::rlwe
