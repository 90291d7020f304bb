// Quotients, remainders and overflow as circuits.
#pragma once

#include "tfhe/integer/bits.h"

namespace crenel::tfhe::radix {

struct Division {
  Blocks quotient, remainder;
};

/// Of unsigned integers, a block of the quotient a step: the remainder so far, with a block of `a`
/// behind it, takes 2 d and then d off (lean), or d, 2 d and 3 d at once and keeps one (fast).
/// By 0: all bits set, remainder a.
Division divide(Circuit& circuit, const Blocks& a, const Blocks& d, Form form);
/// The same of signed integers; IntegerEvaluator::divmod says what of 0 and of the least value.
Division divide_signed(Circuit& circuit, const Blocks& a, const Blocks& d, bool floored, Form form);

/// A result modulo 4^n, and 1 where it is not the exact one.
struct Checked {
  Blocks value;
  Sum overflow;
};
Checked checked_add(Circuit& circuit, const Blocks& a, const Blocks& b, bool is_signed, Form form);
Checked checked_subtract(Circuit& circuit, const Blocks& a, const Blocks& b, bool is_signed,
                         Form form);
/// The product of twice the width.
Checked checked_multiply(Circuit& circuit, const Blocks& a, const Blocks& b, bool is_signed,
                         Form form);

/// Entry `index` of a table whose entries have `count` blocks, 0 beyond its end: sixteen entries by
/// one look-up a block, then the one of each sixteen results that the next two blocks of the index
/// choose, and so on.
Blocks table_entry(Circuit& circuit, const Blocks& index,
                   const std::vector<std::vector<u8>>& entries, u32 count);

}  // namespace crenel::tfhe::radix
