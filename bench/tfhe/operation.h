// One operation of the evaluator with its clear counterpart.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "crenel/tfhe/evaluator.h"

namespace crenel::bench {

struct Operation {
  using Inputs = std::vector<const tfhe::Ciphertext*>;

  std::string name;
  std::optional<tfhe::Gate> gate;  ///< of operations that are one
  u32 inputs = 1;
  u32 plain_modulus = 0;  ///< of the inputs; 0: the set's
  u64 limit = 0;          ///< messages are below it
  u32 bootstraps = 1;     ///< an operation costs
  std::function<std::vector<tfhe::Ciphertext>(const tfhe::Evaluator&, const Inputs&)> run;
  /// Messages of each output from those of the inputs.
  std::function<std::vector<u64>(const std::vector<u64>&)> clear;
};

/// Throws ParameterError for a name that is not known. `floor_bits` 0: half of the message's bits.
Operation make_operation(const tfhe::Params& params, const std::string& name, u32 floor_bits);

/// The gate on bits.
u64 clear_gate(tfhe::Gate gate, const std::vector<u64>& bits);
/// Gates of two bits.
const std::vector<tfhe::Gate>& two_input_gates();

}  // namespace crenel::bench
