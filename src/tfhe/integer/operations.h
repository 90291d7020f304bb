// Integer operations as circuits on blocks of 2 bits. Counts of look-ups and rounds for n blocks;
// those of additions are at propagate() in carries.h.
#pragma once

#include "crenel/tfhe/integer.h"
#include "tfhe/integer/circuit.h"

namespace crenel::tfhe::radix {

/// Blocks of a public value, least significant first.
Blocks constant_blocks(u64 value, u32 bits);

Blocks add(Circuit& circuit, const Blocks& a, const Blocks& b);
Blocks subtract(Circuit& circuit, const Blocks& a, const Blocks& b);
/// n^2 look-ups for the products, about half as many to add them (8 bits: 24 in all, 4 rounds; 16:
/// 106, 7; 32: 424, 11; 64: 1668, 14).
Blocks multiply(Circuit& circuit, const Blocks& a, const Blocks& b);
/// No look-up for a block of the factor: its digits in {-1, 0, 1, 2} scale the blocks of a.
Blocks multiply(Circuit& circuit, const Blocks& a, u64 factor, u32 bits);

/// `one` where the comparison holds, else 0. Order: n look-ups and about n / 2 more in 1 + about
/// log_3 n rounds (8 bits: 5, 2; 64 bits: 47, 4); equality: n + 1, 2 rounds (n <= 15), 64 bits
/// 36, 3.
Sum compare(Circuit& circuit, Comparison comparison, const Blocks& a, const Blocks& b,
            bool is_signed, u64 one = 1);

/// Value of `condition` that stands for true in select().
inline constexpr u64 kCondition = 8;
/// condition (0 or kCondition) ? a : b. 2 n look-ups, 2 rounds.
Blocks select(Circuit& circuit, const Sum& condition, const Blocks& a, const Blocks& b);

/// By whole blocks free, else n look-ups in 1 round; 1 for the sign of an arithmetic shift.
Blocks shift_left(Circuit& circuit, const Blocks& a, u32 count);
Blocks shift_right(Circuit& circuit, const Blocks& a, u32 count, bool is_signed);

/// f of two blocks, n look-ups in 1 round.
Blocks blockwise(Circuit& circuit, const Blocks& a, const Blocks& b,
                 const std::function<u64(u64, u64)>& f);
/// Free.
Blocks bit_not(const Blocks& a);

}  // namespace crenel::tfhe::radix
