// Plain evaluation of a radix circuit on many integers at once, with its ranges checked.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "tfhe/integer/schedule.h"

namespace crenel::test {

using tfhe::radix::Blocks;
using tfhe::radix::Circuit;
using tfhe::radix::Sum;

inline constexpr tfhe::radix::Form kEveryForm[] = {
    tfhe::radix::Form::lean, tfhe::radix::Form::middle, tfhe::radix::Form::fast};

/// inputs[i]: messages of the circuit's input i, one per integer.
class RadixModel {
 public:
  RadixModel(const Circuit& circuit, const std::vector<std::vector<u64>>& inputs) {
    for (const Circuit::Node& node : circuit.nodes()) {
      if (node.round == 0) {
        values_.push_back(inputs.at(node.input));
        continue;
      }
      EXPECT_LE(node.argument.norm2(), circuit.max_norm2());
      std::vector<u64> out;
      for (const i64 x : sum(node.argument, inputs.at(0).size())) {
        const bool inside = x >= node.argument.low && x <= node.argument.high;
        EXPECT_TRUE(inside) << x << " outside " << node.argument.low << ".." << node.argument.high;
        // of a signed argument 32 - f where f is negative: not read, or the table is wrong
        const u64 value = inside ? node.table[static_cast<std::size_t>(x & 31)] : 0;
        EXPECT_LT(value, 16u) << "of " << x;
        out.push_back(value);
      }
      if (node.is_signed()) {  // what a rotation gives of both halves
        for (std::size_t v = 1; v < 16; ++v)
          EXPECT_EQ((node.table[v] + node.table[v + 16]) % 32,
                    (node.table[0] + node.table[16]) % 32);
        EXPECT_GT(node.argument.low, -16);
      }
      values_.push_back(std::move(out));
    }
  }

  std::vector<i64> sum(const Sum& s, std::size_t size) const {
    std::vector<i64> total(size, s.constant);
    for (const auto& [node, factor] : s.terms)
      for (std::size_t i = 0; i < size; ++i)
        total[i] += factor * static_cast<i64>(values_[node][i]);
    return total;
  }

  /// Integers of `outputs`, whose blocks must be below 4.
  std::vector<u64> integers(const Blocks& outputs, std::size_t size) const {
    std::vector<u64> values(size, 0);
    for (std::size_t j = 0; j < outputs.size(); ++j) {
      const std::vector<i64> block = sum(outputs[j], size);
      for (std::size_t i = 0; i < size; ++i) {
        EXPECT_TRUE(block[i] >= 0 && block[i] < 4) << "block " << j << " is " << block[i];
        values[i] |= static_cast<u64>(block[i]) << (2 * j);
      }
    }
    return values;
  }

 private:
  std::vector<std::vector<u64>> values_;
};

/// What a schedule must keep: rotations have room for their functions, and every sum is quiet
/// enough where errors of one rotation count as one.
inline void expect_runnable(const Circuit& circuit, const Blocks& outputs,
                            tfhe::radix::Calls calls) {
  const auto plan = tfhe::radix::schedule(circuit, outputs, calls);
  std::map<u32, std::size_t> rotation_of;
  std::size_t count = 0;
  for (std::size_t round = 0; round < plan.rounds.size(); ++round) {
    for (const auto& rotation : plan.rounds[round]) {
      ++count;
      EXPECT_LE(rotation.nodes.size(), rotation.outputs);
      if (calls == tfhe::radix::Calls::one)  // one call a round
        EXPECT_EQ(rotation.call_outputs, plan.rounds[round][0].call_outputs);
      else
        EXPECT_EQ(rotation.call_outputs, rotation.outputs);
      EXPECT_EQ(rotation.call_outputs % rotation.outputs, 0u);
      EXPECT_LT(rotation.result(rotation.nodes.size() - 1), rotation.call_outputs);
      for (const u32 node : rotation.nodes) {
        const auto& argument = circuit.nodes()[node].argument;
        EXPECT_EQ(circuit.nodes()[node].round, round);
        EXPECT_LT(argument.high, i64(tfhe::radix::kMessages / rotation.outputs));
        EXPECT_TRUE(argument.low >= 0 || rotation.outputs == 1);
        for (const auto& [used, factor] : argument.terms)
          EXPECT_TRUE(circuit.nodes()[used].round == 0 || rotation_of.contains(used));
        EXPECT_EQ(argument.terms, circuit.nodes()[rotation.nodes[0]].argument.terms);
        rotation_of[node] = count;
      }
    }
  }
  const auto noise = [&](const Sum& sum) {
    std::map<std::size_t, double> joint;
    double norm2 = 0;
    for (const auto& [node, factor] : sum.terms) {
      const double f = std::abs(static_cast<double>(factor));
      if (rotation_of.contains(node))
        joint[rotation_of[node]] += f;
      else
        norm2 += f * f;
    }
    for (const auto& [rotation, f] : joint) norm2 += f * f;
    return norm2;
  };
  for (const auto& [node, rotation] : rotation_of)
    EXPECT_LE(noise(circuit.nodes()[node].argument), circuit.max_norm2());
  for (const Sum& output : outputs) EXPECT_LE(output.terms.size(), 1u);
}

inline void expect_runnable(const Circuit& circuit, const Blocks& outputs) {
  for (const auto calls :
       {tfhe::radix::Calls::equal, tfhe::radix::Calls::filled, tfhe::radix::Calls::one})
    expect_runnable(circuit, outputs, calls);
}

/// Blocks of integers, as inputs of a model.
inline std::vector<std::vector<u64>> radix_blocks(const std::vector<u64>& values, u32 bits) {
  std::vector<std::vector<u64>> blocks(bits / 2);
  for (u32 j = 0; j < bits / 2; ++j)
    for (const u64 v : values) blocks[j].push_back(v >> (2 * j) & 3);
  return blocks;
}

}  // namespace crenel::test
