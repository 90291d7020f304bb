// Short levels: those above the normal ones once more, over fewer normal primes.
#pragma once

#include <algorithm>

#include "rlwe/keys.h"

namespace crenel::rlwe {

/// A bootstrap whose result is wanted at a low level needs few of the normal primes. Short level
/// (base, l) has the primes of the normal level `base` and those that level l has above the normal
/// ones; l is the normal top level itself for the foot of the ladder, whose primes are those of
/// `base` (docs/theory/bootstrapping.md, "Fewer levels"). It is one number, so that a rescale goes
/// to the number before it. Keys, tables and polynomials know it; no ciphertext that a user sees
/// has it.
inline constexpr u32 kShortLevel = u32{1} << 16;
constexpr u32 short_level(u32 base, u32 level) { return kShortLevel | base << 8 | level; }
constexpr bool is_short(u32 level) { return level >> 16 == 1; }
constexpr u32 base_of(u32 short_level) { return short_level >> 8 & 0xff; }
/// The level that it is short of, or the level itself.
constexpr u32 ordinary(u32 level) { return is_short(level) ? level & 0xff : level; }
/// The highest ordinary level that keys for `level` serve.
constexpr u32 highest_ordinary(u32 level) { return is_short(level) ? base_of(level) : level; }

/// Whether keys made for the levels up to `key`, SwitchKey::kAny for all, serve `level`.
constexpr bool serves(u32 key, u32 level) {
  if (key == SwitchKey::kAny) return true;
  if (!is_short(key)) return key >= ordinary(level);
  if (!is_short(level)) return level <= base_of(key);
  return base_of(key) >= base_of(level) && ordinary(key) >= ordinary(level);
}

/// The least level whose keys serve both.
constexpr u32 both(u32 a, u32 b) {
  if (serves(a, b)) return a;
  if (serves(b, a)) return b;
  if (is_short(a) && is_short(b))
    return short_level(std::max(base_of(a), base_of(b)), std::max(ordinary(a), ordinary(b)));
  return std::max(ordinary(a), ordinary(b));
}

}  // namespace crenel::rlwe
