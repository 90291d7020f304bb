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

/// The blocks (bits 2j, 2j + 1) of sum_j columns[j] 4^j modulo 4^n. Columns hold at most 6, the
/// last one 14. Look-ups and rounds for n columns that can all carry: n = 1: 1, 1; 2: 3, 2; 4: 9,
/// 3; 8: 22, 4; 16: 48, 5; 32: 104, 7 (a ripple would take 2n - 1 look-ups in n rounds).
Blocks propagate(Circuit& circuit, const Blocks& columns);

/// `one` when a carry leaves the last stage, else 0; `carry` (0 or 1) enters the first.
Sum carry_out(Circuit& circuit, Sum carry, std::vector<Stage> stages, u64 one);

/// terms[j]: any number of sums for column j, each at most 9. Adds within columns until what is
/// left can be propagated, and propagates.
Blocks add_columns(Circuit& circuit, std::vector<Blocks> terms);

}  // namespace crenel::tfhe::radix
