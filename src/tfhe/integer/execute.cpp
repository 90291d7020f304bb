#include "tfhe/integer/execute.h"

#include <algorithm>
#include <map>
#include <optional>

#include "crenel/core/watch.h"

namespace crenel::tfhe::radix {
namespace {

/// Messages of one batched look-up: more gains nothing and costs memory (a message of lut4-128
/// is 3.5 kB, held about three times).
constexpr u64 kBatch = u64(1) << 16;

class Run {
 public:
  Run(const Evaluator& evaluator, const Circuit& circuit, std::span<const Ciphertext* const> inputs,
      const Blocks& outputs, u64 size)
      : evaluator_(evaluator),
        circuit_(circuit),
        inputs_(inputs),
        size_(size),
        values_(circuit.nodes().size()),
        made_(circuit.nodes().size()),
        uses_(circuit.nodes().size()) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const Circuit::Node& node = circuit.nodes()[i];
      if (node.round == 0) values_[i] = inputs[node.input];
      for (const auto& [used, factor] : node.argument.terms) ++uses_[used];
    }
    for (const Sum& output : outputs)
      for (const auto& [used, factor] : output.terms) ++uses_[used];
  }

  void rounds() {
    std::vector<std::vector<u32>> by_round(circuit_.rounds() + 1);
    for (u32 i = 0; i < circuit_.nodes().size(); ++i)
      if (circuit_.nodes()[i].round > 0) by_round[circuit_.nodes()[i].round].push_back(i);
    const u64 batch = std::max<u64>(1, kBatch / size_);
    for (const std::vector<u32>& nodes : by_round)
      for (std::size_t i = 0; i < nodes.size(); i += batch)
        look_up(std::span(nodes).subspan(i, std::min<std::size_t>(batch, nodes.size() - i)));
  }

  Ciphertext output(const Sum& sum) {
    if (sum.is_constant()) {  // 0 times an input: nothing comes from the host
      const Term nothing{inputs_[0], 0};
      return evaluator_.linear({&nothing, 1}, sum.constant);
    }
    if (!sum.is_node()) return combine(sum);
    const u32 node = sum.terms[0].first;
    if (--uses_[node] == 0 && made_[node]) return std::move(made_[node].value());
    return values_[node]->clone();
  }

 private:
  Ciphertext combine(const Sum& sum) const {
    std::vector<Term> terms;
    for (const auto& [node, factor] : sum.terms) terms.push_back({values_[node], factor});
    return evaluator_.linear(terms, sum.constant);
  }

  void look_up(std::span<const u32> nodes) {
    std::vector<Ciphertext> sums;
    std::vector<const Ciphertext*> parts;
    sums.reserve(nodes.size());
    std::vector<Lut> tables;
    std::map<Table, u32> known;
    std::vector<u32> index;
    for (const u32 i : nodes) {
      const Circuit::Node& node = circuit_.nodes()[i];
      if (node.argument.is_node()) {
        parts.push_back(values_[node.argument.terms[0].first]);
      } else {
        sums.push_back(combine(node.argument));
        parts.push_back(&sums.back());
      }
      const auto [at, is_new] = known.try_emplace(node.table, static_cast<u32>(tables.size()));
      if (is_new) tables.push_back({{node.table.begin(), node.table.end()}, 0});
      index.insert(index.end(), size_, at->second);
    }
    if (tables.size() == 1) index.clear();
    const Ciphertext in = concatenate(parts);
    const Ciphertext out = evaluator_.lut(in, tables, index);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      values_[nodes[i]] = &made_[nodes[i]].emplace(out.slice(i * size_, size_));
    }
    for (const u32 i : nodes)
      for (const auto& [used, factor] : circuit_.nodes()[i].argument.terms)
        if (--uses_[used] == 0) made_[used].reset();
  }

  const Evaluator& evaluator_;
  const Circuit& circuit_;
  std::span<const Ciphertext* const> inputs_;
  u64 size_;
  std::vector<const Ciphertext*> values_;
  std::vector<std::optional<Ciphertext>> made_;  ///< results of look-ups that are still needed
  std::vector<u32> uses_;
};

}  // namespace

std::vector<Ciphertext> execute(const Evaluator& evaluator, const Circuit& circuit,
                                std::span<const Ciphertext* const> inputs, const Blocks& outputs,
                                u64 size) {
  Run run(evaluator, circuit, inputs, outputs, size);
  watch::Task task(circuit.look_ups() * size, "bootstraps");
  run.rounds();
  std::vector<Ciphertext> results;
  for (const Sum& sum : outputs) results.push_back(run.output(sum));
  task.finish();
  return results;
}

}  // namespace crenel::tfhe::radix
