// What an IntegerCircuit holds: operations in order, by what builds their look-ups.
#pragma once

#include <functional>
#include <vector>

#include "crenel/tfhe/integer_circuit.h"
#include "tfhe/content_key.h"
#include "tfhe/integer/circuit.h"

namespace crenel::tfhe {

struct IntegerCircuit::State {
  /// A result of a node, or known blocks.
  struct Ref {
    u32 node = 0, part = 0;
    bool is_known = false;
    radix::Blocks known;
    bool same(const Ref& other) const {
      return !is_known && !other.is_known && node == other.node && part == other.part;
    }
  };
  /// Blocks of all results, a bit as one of 0..1.
  using Build = std::function<std::vector<radix::Blocks>(radix::Circuit&, radix::Form,
                                                         const std::vector<radix::Blocks>&)>;
  /// What later operations look at.
  enum class Kind : u8 { input, add, subtract, choose, other };
  struct Node {
    Kind kind = Kind::other;
    std::vector<Ref> operands;
    Build build;  ///< of an input none
    u32 input = 0;
    std::vector<Type> types;
  };

  u64 id = 0;  ///< of this circuit alone, for as long as the process runs
  std::vector<Node> nodes;
  std::vector<Type> inputs, output_types;
  std::vector<Ref> outputs;
  ContentKey recipe{"circuit"};

  /// Blocks of all outputs, one after the other, of those of the inputs. Operations that no output
  /// needs are not built.
  radix::Blocks build(radix::Circuit& circuit, radix::Form form,
                      const std::vector<radix::Blocks>& inputs) const;
};

}  // namespace crenel::tfhe
