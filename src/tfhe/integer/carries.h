// Carries of radix-4 columns in parallel, and sums of many terms a column.
#pragma once

#include "tfhe/integer/spans.h"

namespace crenel::tfhe::radix {

inline u32 count_of(const Blocks& blocks) { return static_cast<u32>(blocks.size()); }
/// What of a column's sum stays in its block.
inline u64 low_block(u64 v) { return v & 3; }

/// What becomes of the last block; null: nothing.
using Last = std::function<u64(u64)>;

/// The blocks (bits 2j, 2j + 1) of carry_in + sum_j columns[j] 4^j modulo 4^n, the last one as
/// `last` has it. Columns hold at most 6, the last one 14. Lean: a ripple, n rotations in n rounds,
/// as a column with its carry is at most 7 and one rotation gives its block and the next carry.
/// Fast: the carries into all columns at once (spans.h). Middle: into every other column, whose
/// rotation gives that of the next. Look-ups and rounds of an addition of n columns, middle and
/// fast (where sums of 34 squared factors are too many, in brackets): n = 4: 7, 3 and 8, 2 (9, 4
/// and 10, 3); 8: 18, 4 and 19, 3 (22, 5 and 24, 3); 16: 39, 5 and 46, 3 (50, 5 and 56, 4); 32: 86,
/// 5 and 98, 4 (107, 6 and 128, 4). Look-ups of one column share rotations.
Blocks propagate(Circuit& circuit, const Blocks& columns, Form form, const Last& last = {},
                 bool carry_in = false);

/// terms[j]: any number of sums for column j, each at most 9. Adds within columns until what is
/// left can be propagated, and propagates. Lean: bins as full as they get. Else in as few rounds as
/// that takes, adding no more than they need.
Blocks add_columns(Circuit& circuit, std::vector<Blocks> terms, Form form);

/// out[i] is 1 where any of flags[0..i] (each 0 or 1) is: groups of seven, whose own flags are the
/// same problem seven times smaller.
Blocks prefix_or(Circuit& circuit, const Blocks& flags);
/// `one` where any flag is set, where none is.
Sum any_of(Circuit& circuit, const Blocks& flags, u64 one = 1);
Sum none_of(Circuit& circuit, const Blocks& flags, u64 one = 1);

}  // namespace crenel::tfhe::radix
