// Circuits on ciphertexts: a batched look-up a round and number of outputs.
#pragma once

#include <span>
#include <vector>

#include "crenel/tfhe/evaluator.h"
#include "tfhe/integer/schedule.h"

namespace crenel::tfhe::radix {

/// Values of the program's outputs, each `size` messages modulo the set's plain modulus. `inputs`
/// in the order in which the circuit made them, at least one, each of `size` messages. Outputs have
/// the noise of one look-up or of the input that they are.
std::vector<Ciphertext> execute(const Evaluator& evaluator, const Program& program,
                                std::span<const Ciphertext* const> inputs, u64 size);

}  // namespace crenel::tfhe::radix
