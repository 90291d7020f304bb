// Carries of radix-4 columns in parallel, and sums of many terms a column.
#pragma once

#include "tfhe/integer/circuit.h"

namespace crenel::tfhe::radix {

/// A column with an incoming carry: it hands on 2 (a carry whatever comes in), 1 (what comes in) or
/// 0.
struct Stage {
  Sum value;
  std::function<u64(u64)> state;  ///< value -> 0, 1, 2
};
/// Of a column whose value is at most 6.
Stage column_stage(const Sum& value);

/// What becomes of the last block; null: nothing.
using Last = std::function<u64(u64)>;

/// The blocks (bits 2j, 2j + 1) of sum_j columns[j] 4^j modulo 4^n, the last one as `last` has it.
/// Columns hold at most 6, the last one 14. Lean: a ripple, n rotations in n rounds, as a column
/// with its carry is at most 7 and one rotation gives its block and the next carry. Fast: look-ups
/// and rounds for n columns that can all carry: n = 1: 1, 1; 2: 3, 2; 4: 9, 3; 8: 22, 4; 16: 48, 5;
/// 32: 104, 7, of which the two of a column share a rotation.
Blocks propagate(Circuit& circuit, const Blocks& columns, Form form, const Last& last = {});

/// `one` when a carry leaves the last stage, else 0; `carry` (0 or 1) enters the first.
Sum carry_out(Circuit& circuit, Sum carry, std::vector<Stage> stages, u64 one);

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
