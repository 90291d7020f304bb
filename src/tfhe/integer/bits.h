// Circuits on the bits of integers: shifts by encrypted counts, rotations, counts of bits, signs.
#pragma once

#include "tfhe/integer/operations.h"

namespace crenel::tfhe::radix {

enum class Direction : u8 { left, right };
/// What comes in at the end that a shift leaves.
enum class Fill : u8 { zero, sign, around };

/// By a public count below bits, around the ends: by whole blocks free, else n look-ups in 1 round.
Blocks rotate(const Blocks& a, u32 count, Direction direction, Circuit& circuit);

/// By encrypted counts. A stage for each bit of the count moves blocks or leaves them: one rotation
/// a block, whose two results are what stays and what goes. Counts of 2^stages and more, of which
/// there are stages enough to pass the width, leave nothing but `fill`.
Blocks shift(Circuit& circuit, const Blocks& a, const Blocks& count, Direction direction,
             Fill fill);

/// 1, or `one`, where the top bit is set.
Sum sign_of(Circuit& circuit, const Blocks& a, u64 one = 1);
/// -a where the flag is set: `flag4` is 0 or 4, `flag1` 0 or 1, the same flag. n rotations and an
/// addition of `flag1`.
Blocks negate_if(Circuit& circuit, const Sum& flag4, const Sum& flag1, const Blocks& a, Form form);
/// ~a where the flag (0 or 4) is set, without that addition.
Blocks flip_if(Circuit& circuit, const Sum& flag4, const Blocks& a);
/// 0 where the flag (0 or 4) is not set.
Blocks keep_if(Circuit& circuit, const Sum& flag4, const Blocks& a);
Blocks absolute(Circuit& circuit, const Blocks& a, Form form);

/// Blocks of a wider or narrower integer of the same value modulo 4^count.
Blocks resized(Circuit& circuit, const Blocks& a, u32 count, bool is_signed);

/// Width of a count of bits of integers of `bits` bits.
constexpr u32 count_bits(u32 bits) { return bits < 256 ? 8 : 16; }
/// Integers of count_bits.
Blocks leading_zeros(Circuit& circuit, const Blocks& a, Form form);
Blocks trailing_zeros(Circuit& circuit, const Blocks& a, Form form);
Blocks count_ones(Circuit& circuit, const Blocks& a, Form form);

}  // namespace crenel::tfhe::radix
