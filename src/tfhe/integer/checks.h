// Checks that encryption and evaluation of integers share. They throw ParameterError.
#pragma once

#include "crenel/tfhe/integer.h"
#include "crenel/tfhe/params.h"
#include "tfhe/integer/circuit.h"

namespace crenel::tfhe::radix {

void check_bits(u32 bits);
/// p = 32 with padding, r = 1, room for sums of kMaxNorm2.
void check_set(const Params& params);
/// `value` as an integer of `bits` bits; `what` names it in the
/// error, which does not tell its value.
void check_range(const WideValue& value, u32 bits, bool is_signed, const std::string& what);
/// Values of words_of(bits) words each, checked.
std::vector<WideValue> values_of(std::span<const u64> words, u32 bits, bool is_signed);
/// Of a shift by a public count.
void check_count(u32 count, u32 bits);
/// Of a shift by encrypted counts: StateError for signed ones.
void check_shift_count(bool is_signed);
[[noreturn]] void refuse_zero_divisor();
/// Blocks of the entries of a public table, words_of(bits) words each, for an index of so many
/// bits; StateError for a signed one.
std::vector<std::vector<u8>> table_of(u32 index_bits, bool index_signed,
                                      std::span<const u64> entries, u32 bits, bool is_signed);

}  // namespace crenel::tfhe::radix
