// Graph: record an evaluation once, replay it on new inputs.
#include "ckks/evaluator_state.h"

namespace crenel::ckks {

struct Graph::State {
  Evaluator evaluator;
  Function function;
  std::vector<Ciphertext> inputs;           ///< the recorded addresses
  std::vector<Ciphertext> outputs;          ///< written by every replay
  std::unique_ptr<device::GraphExec> exec;  ///< last member: released before the memory it uses
};

Graph::Graph(const Evaluator& evaluator, std::span<const Ciphertext> inputs, const Function& f)
    : state_(new State{evaluator, f, {}, {}, nullptr}) {
  for (const auto& input : inputs) {
    evaluator.state().check(input);
    state_->inputs.push_back(evaluator.state().copy(input));  // forgets the seed: data changes
  }
  State* s = state_.get();
  state_->exec = evaluator.stream().capture([s] { s->outputs = s->function(s->inputs); });
  state_->exec->launch(evaluator.stream());  // outputs of the recording are written from now on
}

Graph::Graph(Graph&&) noexcept = default;
Graph::~Graph() {
  if (!state_) return;
  // Work in flight still writes to the recorded addresses.
  try {
    state_->evaluator.stream().synchronize();
  } catch (...) {
  }
}

namespace {

void expect_equal(std::size_t index, const char* what, double found, double expected) {
  if (found != expected)
    throw StateError(
        cat("graph input ", index, " has ", what, " ", found, ", recorded with ", expected),
        {{"input", cat(index)}, {what, cat(found)}, {"expected", cat(expected)}});
}

}  // namespace

const std::vector<Ciphertext>& Graph::replay(std::span<const Ciphertext> inputs) {
  std::vector<const Ciphertext*> pointers;
  for (const auto& input : inputs) pointers.push_back(&input);
  return replay(std::span<const Ciphertext* const>(pointers));
}

const std::vector<Ciphertext>& Graph::replay(std::span<const Ciphertext* const> inputs) {
  State& s = *state_;
  if (inputs.size() != s.inputs.size())
    throw StateError(cat("graph got ", inputs.size(), " inputs, recorded with ", s.inputs.size()),
                     {{"inputs", cat(inputs.size())}, {"expected", cat(s.inputs.size())}});
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto &a = *inputs[i], &b = s.inputs[i];
    s.evaluator.state().check(a);
    expect_equal(i, "level", a.level(), b.level());
    expect_equal(i, "scale", a.scale(), b.scale());
    expect_equal(i, "slots", a.slots(), b.slots());
    expect_equal(i, "batch", a.batch(), b.batch());
    expect_equal(i, "components", a.components(), b.components());
    if (b.metadata().real && !a.metadata().real)  // the recorded outputs may claim to be real
      throw StateError(cat("graph input ", i, " has complex slots, recorded with real ones"),
                       {{"input", cat(i)}, {"real", "false"}, {"expected", "true"}});
  }
  auto& stream = s.evaluator.stream();
  for (std::size_t i = 0; i < inputs.size(); ++i)
    stream.copy(s.inputs[i].data().poly.data(), inputs[i]->data().poly.data(),
                inputs[i]->data().poly.bytes());
  s.exec->launch(stream);
  return s.outputs;
}

}  // namespace crenel::ckks
