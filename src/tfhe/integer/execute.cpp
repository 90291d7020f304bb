#include "tfhe/integer/execute.h"

#include <algorithm>
#include <map>
#include <optional>

#include "crenel/core/watch.h"

namespace crenel::tfhe::radix {
namespace {

/// Messages of one batched look-up: more gains nothing and costs memory (a message of lut4-128
/// is 8 kB, held about three times).
constexpr u64 kBatch = u64(1) << 16;

class Run {
 public:
  Run(const Evaluator& evaluator, const Program& program, std::span<const Ciphertext* const> inputs,
      u64 size)
      : evaluator_(evaluator),
        circuit_(program.circuit),
        inputs_(inputs),
        size_(size),
        values_(circuit_.nodes().size()),
        made_(circuit_.nodes().size()),
        uses_(circuit_.nodes().size()) {
    for (std::size_t i = 0; i < values_.size(); ++i)
      if (circuit_.nodes()[i].round == 0) values_[i] = inputs[circuit_.nodes()[i].input];
    for (const auto& round : program.plan.rounds)
      for (const Rotation& rotation : round) count_uses(argument_of(rotation));
    for (const Sum& output : program.outputs) count_uses(output);
  }

  void rounds(const Schedule& plan) {
    for (const auto& round : plan.rounds)
      for (const u32 outputs : {1u, 2u, 4u}) run(round, outputs);
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
  const Sum& argument_of(const Rotation& rotation) const {
    return circuit_.nodes()[rotation.nodes[0]].argument;
  }
  void count_uses(const Sum& sum) {
    for (const auto& [used, factor] : sum.terms) ++uses_[used];
  }

  Ciphertext combine(const Sum& sum) const {
    std::vector<Term> terms;
    for (const auto& [node, factor] : sum.terms) terms.push_back({values_[node], factor});
    return evaluator_.linear(terms, sum.constant);
  }

  // The rotations of a round with so many outputs.
  void run(const std::vector<Rotation>& round, u32 outputs) {
    std::vector<const Rotation*> chosen;
    for (const Rotation& rotation : round)
      if (rotation.outputs == outputs) chosen.push_back(&rotation);
    const u64 batch = std::max<u64>(1, kBatch / (size_ * outputs));
    for (std::size_t i = 0; i < chosen.size(); i += batch)
      rotate(std::span(chosen).subspan(i, std::min<std::size_t>(batch, chosen.size() - i)),
             outputs);
  }

  // The functions of a rotation one behind the other, as a look-up with several outputs reads them.
  std::vector<u8> table_of(const Rotation& rotation) const {
    const Circuit::Node& first = circuit_.nodes()[rotation.nodes[0]];
    if (first.is_signed()) return {first.table.begin(), first.table.end()};
    const u32 part = kMessages / rotation.outputs;
    std::vector<u8> table(kMessages);
    for (std::size_t s = 0; s < rotation.nodes.size(); ++s)
      std::copy_n(circuit_.nodes()[rotation.nodes[s]].table.begin(), part,
                  table.begin() + static_cast<std::ptrdiff_t>(s * part));
    return table;
  }

  void rotate(std::span<const Rotation* const> rotations, u32 outputs) {
    std::vector<Ciphertext> sums;
    std::vector<const Ciphertext*> parts;
    sums.reserve(rotations.size());
    std::vector<Lut> tables;
    std::map<std::vector<u8>, u32> known;
    std::vector<u32> index;
    for (const Rotation* rotation : rotations) {
      const Sum& argument = argument_of(*rotation);
      if (argument.is_node()) {
        parts.push_back(values_[argument.terms[0].first]);
      } else {
        sums.push_back(combine(argument));
        parts.push_back(&sums.back());
      }
      const std::vector<u8> table = table_of(*rotation);
      const auto [at, is_new] = known.try_emplace(table, static_cast<u32>(tables.size()));
      if (is_new) tables.push_back({{table.begin(), table.end()}, 0});
      index.insert(index.end(), size_, at->second);
    }
    if (tables.size() == 1) index.clear();
    const Ciphertext in = concatenate(parts);
    keep(rotations, outputs == 1 ? evaluator_.lut(in, tables, index)
                                 : evaluator_.lut(in, tables, index, outputs));
    for (const Rotation* rotation : rotations)
      for (const auto& [used, factor] : argument_of(*rotation).terms)
        if (--uses_[used] == 0) made_[used].reset();
  }

  void keep(std::span<const Rotation* const> rotations, const Ciphertext& out) {
    std::vector<u64> places(size_);
    for (std::size_t r = 0; r < rotations.size(); ++r) {
      const Rotation& rotation = *rotations[r];
      for (std::size_t s = 0; s < rotation.nodes.size(); ++s) {
        const u32 node = rotation.nodes[s];
        if (rotation.outputs == 1) {
          values_[node] = &made_[node].emplace(out.slice(r * size_, size_));
          continue;
        }
        for (u64 i = 0; i < size_; ++i) places[i] = (r * size_ + i) * rotation.outputs + s;
        values_[node] = &made_[node].emplace(out.take(places));
      }
    }
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

std::vector<Ciphertext> execute(const Evaluator& evaluator, const Program& program,
                                std::span<const Ciphertext* const> inputs, u64 size) {
  Run run(evaluator, program, inputs, size);
  watch::Task task(program.plan.rotations() * size, "bootstraps");
  run.rounds(program.plan);
  std::vector<Ciphertext> results;
  for (const Sum& sum : program.outputs) results.push_back(run.output(sum));
  task.finish();
  return results;
}

}  // namespace crenel::tfhe::radix
