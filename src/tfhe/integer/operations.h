// Integer operations as circuits on blocks of 2 bits. Counts of look-ups and rounds for n blocks;
// those of additions are at propagate() in carries.h. What the counts become as rotations is in
// docs/guide/integers.md.
#pragma once

#include "crenel/tfhe/integer.h"
#include "tfhe/integer/carries.h"

namespace crenel::tfhe::radix {

/// Blocks of a public value, least significant first.
Blocks constant_blocks(const WideValue& value, u32 bits);

Blocks add(Circuit& circuit, const Blocks& a, const Blocks& b, Form form);
/// The last block as `last` has it (propagate()).
Blocks subtract(Circuit& circuit, const Blocks& a, const Blocks& b, Form form,
                const Last& last = {});
/// bit ? a + b : a, and bit ? a - b : a. Fast does not wait for the bit: carries of the sum are
/// found meanwhile, and the look-up that would add the carry in gives b_j + carry or 0, which is
/// added to a_j by one more. So two rounds behind the bit and the carries, whichever are later; a
/// round more where the set's max_norm2 is below 27. Lean and middle add what is left of b.
Blocks add_where(Circuit& circuit, const Sum& bit, const Blocks& a, const Blocks& b, Form form);
Blocks subtract_where(Circuit& circuit, const Sum& bit, const Blocks& a, const Blocks& b,
                      Form form);
/// n^2 look-ups for the products, about half as many to add them (8 bits: 25 in all, 4 rounds; 16:
/// 108, 6; 32: 442, 8; 64: 1707, 9; fast, sums of 25 squared factors). No look-up for a block of
/// a known factor: its digits in {-1, 0, 1, 2} scale the blocks of the other.
Blocks multiply(Circuit& circuit, const Blocks& a, const Blocks& b, Form form);
/// The digits of all products of two blocks, by columns, for add_columns().
std::vector<Blocks> product_columns(Circuit& circuit, const Blocks& a, const Blocks& b);

/// `one` where the comparison holds, else 0. Order: signs of pairs of blocks, four at a time (8
/// bits 3, 2; 64 bits 21, 3). Where the set's max_norm2 is below 34: of blocks (5, 2; 43, 4), or,
/// lean, a ripple of n rotations in n rounds, one more for signed integers. Equality: signs of
/// pairs, three at a time, 64 bits 23, 3; else blocks, fifteen at a time: 36, 3.
Sum compare(Circuit& circuit, Comparison comparison, const Blocks& a, const Blocks& b,
            bool is_signed, Form form, u64 one = 1);

/// Value of `condition` that stands for true in select().
inline constexpr u64 kCondition = 8;
/// condition (0 or kCondition) ? a : b. 2 n look-ups, 2 rounds; n in 1 where one of them is known.
Blocks select(Circuit& circuit, const Sum& condition, const Blocks& a, const Blocks& b);
/// The same by a bit, 0 or 1. One look-up and round more where one of the two is not known and the
/// set's max_norm2 is below 66.
Blocks choose(Circuit& circuit, const Sum& bit, const Blocks& a, const Blocks& b);

/// The smaller and then the larger of each pair: one comparison, 3 n look-ups.
Blocks exchange(Circuit& circuit, const Blocks& a, const Blocks& b, bool is_signed, Form form);

/// By whole blocks free, else n look-ups in 1 round; 1 for the sign of an arithmetic shift.
Blocks shift_left(Circuit& circuit, const Blocks& a, u32 count);
Blocks shift_right(Circuit& circuit, const Blocks& a, u32 count, bool is_signed);

/// f of two blocks, n look-ups in 1 round.
Blocks blockwise(Circuit& circuit, const Blocks& a, const Blocks& b,
                 const std::function<u64(u64, u64)>& f);
/// Free.
Blocks bit_not(const Blocks& a);

}  // namespace crenel::tfhe::radix
