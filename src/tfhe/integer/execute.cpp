#include "tfhe/integer/execute.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "crenel/core/watch.h"
#include "tfhe/evaluator_state.h"

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
        size_(size),
        values_(circuit_.nodes().size()) {
    for (const Ciphertext* input : inputs) check(*input);
    for (std::size_t i = 0; i < values_.size(); ++i) {
      if (circuit_.nodes()[i].round != 0) continue;
      const Ciphertext* const input = inputs[circuit_.nodes()[i].input];
      values_[i].rows = {input, 0, 1, input->data().noise};
    }
    for (const auto& round : program.plan.rounds)
      for (const Rotation& rotation : round) count_uses(argument_of(rotation));
    for (const Sum& output : program.outputs) count_uses(output);
  }

  void rounds(const Schedule& plan) {
    for (const auto& round : plan.rounds)
      for (const u32 outputs : {1u, 2u, 4u}) run(round, outputs);
  }

  Ciphertext output(const Sum& sum) const {
    Ciphertext result = value(sum);
    // narrower than what a call of many tables knows, where its range is
    if (sum.low >= 0) result.data().bound = std::max<u32>(2, static_cast<u32>(sum.high) + 1);
    return result;
  }

 private:
  /// An input, or what a look-up gave: its place among all results of one call, which are kept
  /// until the last of them was used.
  struct Value {
    Selected rows;
    std::shared_ptr<const Ciphertext> call;
    u32 uses = 0;
  };

  Ciphertext value(const Sum& sum) const {
    if (!sum.is_node()) {
      const SelectedSum wanted = selected(sum);
      return evaluator_.state().sums({&wanted, 1}, size_);
    }
    const Selected& rows = values_[sum.terms[0].first].rows;
    if (rows.from->size() == size_) return rows.from->clone();
    if (rows.step == 1) return rows.from->slice(rows.first, size_);
    return rows.from->take(places(rows));
  }

  void check(const Ciphertext& input) const {
    const Evaluator::State& s = evaluator_.state();
    const char* const operation = "input of a circuit";
    s.check(input);
    s.check_size(input, size_);
    s.check_plain_modulus(input, s.params().spec().plain_modulus, operation);
    s.check_log_modulus(input, s.log_q(), operation);
  }

  const Sum& argument_of(const Rotation& rotation) const {
    return circuit_.nodes()[rotation.nodes[0]].argument;
  }
  void count_uses(const Sum& sum) {
    for (const auto& [used, factor] : sum.terms) ++values_[used].uses;
  }
  SelectedSum selected(const Sum& sum) const {
    SelectedSum wanted{{}, sum.constant};
    for (const auto& [node, factor] : sum.terms)
      wanted.terms.emplace_back(&values_[node].rows, factor);
    return wanted;
  }
  std::vector<u64> places(const Selected& rows) const {
    std::vector<u64> at(size_);
    for (u64 i = 0; i < size_; ++i) at[i] = rows.first + i * rows.step;
    return at;
  }

  // The rotations of a round whose call has so many outputs.
  void run(const std::vector<Rotation>& round, u32 outputs) {
    std::vector<const Rotation*> chosen;
    for (const Rotation& rotation : round)
      if (rotation.call_outputs == outputs) chosen.push_back(&rotation);
    const u64 batch = std::max<u64>(1, kBatch / (size_ * outputs));
    for (std::size_t i = 0; i < chosen.size(); i += batch)
      rotate(std::span(chosen).subspan(i, std::min<std::size_t>(batch, chosen.size() - i)),
             outputs);
  }

  // The functions of a rotation one behind the other, as a look-up with several outputs reads them.
  std::string table_of(const Rotation& rotation) const {
    const Circuit::Node& first = circuit_.nodes()[rotation.nodes[0]];
    if (first.is_signed()) return {first.table.begin(), first.table.end()};
    const u32 part = kMessages / rotation.outputs;
    std::string table(kMessages, 0);
    for (std::size_t s = 0; s < rotation.nodes.size(); ++s)
      std::copy_n(circuit_.nodes()[rotation.nodes[s]].table.begin(), part,
                  table.begin() + static_cast<std::ptrdiff_t>(s * part));
    return table;
  }

  void rotate(std::span<const Rotation* const> rotations, u32 outputs) {
    std::vector<SelectedSum> arguments;
    std::vector<Lut> tables;
    std::map<std::string, u32> known;
    std::vector<u32> index;
    arguments.reserve(rotations.size());
    index.reserve(rotations.size() * size_);
    for (const Rotation* rotation : rotations) {
      arguments.push_back(selected(argument_of(*rotation)));
      const std::string table = table_of(*rotation);
      const auto [at, is_new] = known.try_emplace(table, static_cast<u32>(tables.size()));
      if (is_new) tables.push_back({{table.begin(), table.end()}, 0});
      index.insert(index.end(), size_, at->second);
    }
    if (tables.size() == 1) index.clear();
    const Evaluator::State& s = evaluator_.state();
    const Ciphertext in = s.sums(arguments, size_);
    keep(rotations, s.looked_up(in, s.context.prepare(tables, index, in.plain_modulus()), outputs));
    for (const Rotation* rotation : rotations)
      for (const auto& [used, factor] : argument_of(*rotation).terms)
        if (--values_[used].uses == 0) values_[used].call.reset();
  }

  void keep(std::span<const Rotation* const> rotations, Ciphertext&& results) {
    const auto call = std::make_shared<const Ciphertext>(std::move(results));
    const Noise& noise = call->data().noise;
    for (std::size_t r = 0; r < rotations.size(); ++r) {
      const Rotation& rotation = *rotations[r];
      const u32 step = rotation.call_outputs;
      for (std::size_t n = 0; n < rotation.nodes.size(); ++n) {
        Value& value = values_[rotation.nodes[n]];
        value.call = call;
        value.rows = {call.get(), r * size_ * step + rotation.result(n), step, {}};
        if (step == 1)
          value.rows.noise = noise.slice(value.rows.first, size_);
        else
          for (const u64 at : places(value.rows)) value.rows.noise.append(noise.slice(at, 1));
      }
    }
  }

  const Evaluator& evaluator_;
  const Circuit& circuit_;
  u64 size_;
  std::vector<Value> values_;
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
