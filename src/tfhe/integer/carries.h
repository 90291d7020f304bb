// Carries of radix-4 columns in parallel, and sums of many terms a column.
#pragma once

#include "tfhe/integer/circuit.h"

namespace crenel::tfhe::radix {

/// What becomes of the last block; null: nothing.
using Last = std::function<u64(u64)>;

/// The blocks (bits 2j, 2j + 1) of sum_j columns[j] 4^j modulo 4^n, the last one as `last` has it.
/// Columns hold at most 6, the last one 14. Lean: a ripple, n rotations in n rounds, as a column
/// with its carry is at most 7 and one rotation gives its block and the next carry. Middle: carries
/// of three columns by one look-up, then of three times as many. Fast: spans of four columns, then
/// of sixteen. Look-ups and rounds for n columns that can all carry, middle and fast (where sums of
/// 88 squared factors are too many, in brackets): n = 4: 9, 3 and 9, 3; 8: 22, 4 and 24, 3 (27);
/// 16: 48, 5 and 56, 4 (67); 32: 104, 7 and 135, 4 (177). Look-ups of one column share rotations.
Blocks propagate(Circuit& circuit, const Blocks& columns, Form form, const Last& last = {});

/// A number whose sign counts: a look-up gives -1, 0 or 1 of its value.
struct Signed {
  Sum value;
  std::function<i64(i64)> sign;
};
i64 signum(i64 v);
/// Of numbers in order, least significant first: one number with the sign of the last of them that
/// is not 0. Four at a time, so a round for each factor of four.
Signed leading_sign(Circuit& circuit, std::vector<Signed> numbers);

/// terms[j]: any number of sums for column j, each at most 9. Adds within columns until what is
/// left can be propagated, and propagates.
Blocks add_columns(Circuit& circuit, std::vector<Blocks> terms, Form form);

/// out[i] is 1 where any of flags[0..i] (each 0 or 1) is: groups of seven, whose own flags are the
/// same problem seven times smaller.
Blocks prefix_or(Circuit& circuit, const Blocks& flags);
/// `one` where any flag is set, where none is.
Sum any_of(Circuit& circuit, const Blocks& flags, u64 one = 1);
Sum none_of(Circuit& circuit, const Blocks& flags, u64 one = 1);

}  // namespace crenel::tfhe::radix
