// Graph: record an evaluation once, replay it on new inputs and with other keys.
#include <algorithm>
#include <mutex>

#include "ckks/evaluator_state.h"
#include "rlwe/key_slots.h"

namespace crenel::ckks {

struct Graph::State {
  Evaluator evaluator;                    ///< what was recorded with; no keys where they are slots
  std::shared_ptr<rlwe::KeySlots> slots;  ///< null: keys are no argument
  ForkMutex mutex;                        ///< one replay is queued at a time: of what follows
  std::shared_ptr<device::Stream> last;   ///< that a replay was queued on
  /// Whose the recorded inputs are where keys are an argument: nobody's, so that a ciphertext of a
  /// client that is no input is found.
  const SecretKeyId anyone = random::draw_secret_key_id();
  std::function<void()> run;
  std::vector<Ciphertext> inputs;           ///< the recorded addresses
  std::vector<Ciphertext> outputs;          ///< written by every replay
  std::unique_ptr<device::GraphExec> exec;  ///< last member: released before the memory it uses

  State(Evaluator ev, std::shared_ptr<rlwe::KeySlots> key_slots, std::span<const Ciphertext> in);
  void expect_signature(std::span<const Ciphertext* const> found) const;
  /// With the mutex held. The results are copies: the next replay overwrites what this one wrote.
  std::vector<Ciphertext> replay(const Evaluator::State& with,
                                 std::span<const Ciphertext* const> in);
};

Graph::State::State(Evaluator ev, std::shared_ptr<rlwe::KeySlots> key_slots,
                    std::span<const Ciphertext> in)
    : evaluator(std::move(ev)), slots(std::move(key_slots)), last(evaluator.state().stream) {
  for (const auto& input : in) {
    evaluator.state().check(input);
    inputs.push_back(evaluator.state().copy(input));  // forgets the seed: data changes
    if (slots) inputs.back().data().meta.secret_key = anyone;
  }
}

namespace {

std::vector<const Ciphertext*> pointers_to(std::span<const Ciphertext> inputs) {
  std::vector<const Ciphertext*> pointers;
  for (const auto& input : inputs) pointers.push_back(&input);
  return pointers;
}

// A recorded replay would read keys and inputs of whoever replays the same graph at that time.
void expect_eager(const device::Stream& stream) {
  if (stream.capturing())
    throw StateError("replay of a graph inside a recording; call the function that it recorded",
                     {{"found", "a recording"}, {"expected", "an eager evaluation"}});
}

void expect_fixed(const std::shared_ptr<rlwe::KeySource>& source) {
  if (source && !source->fixed())
    throw StateError(
        "a recording with keys that are staged or another recording's argument, expected keys in "
        "device memory",
        {{"found", "keys without a lasting address"}, {"expected", "keys in device memory"}});
}

void expect_equal(std::size_t index, const char* what, double found, double expected) {
  if (found != expected)
    throw StateError(
        cat("graph input ", index, " has ", what, " ", found, ", recorded with ", expected),
        {{"input", index}, {what, found}, {"expected", expected}});
}

}  // namespace

Graph::Graph(const Evaluator& evaluator, std::span<const Ciphertext> inputs, const Function& f)
    : state_(new State(evaluator, nullptr, inputs)) {
  expect_fixed(evaluator.state().source);
  State* s = state_.get();
  s->run = [s, f] {
    s->outputs.clear();  // first: its memory serves this run
    s->outputs = f(s->inputs);
  };
  s->exec = evaluator.stream().capture(s->run);
  s->exec->launch(evaluator.stream());  // outputs of the recording are written from now on
}

Graph::Graph(const Evaluator& evaluator, std::span<const Ciphertext> inputs,
             const KeyedFunction& f) {
  const Evaluator::State& lender = evaluator.state();
  expect_fixed(lender.source);
  for (const Ciphertext& input : inputs) lender.check(input);
  // What is queued by others meanwhile must not be recorded.
  const auto stream = lender.context.device().make_stream();
  stream->wait_for(*lender.stream);
  static const rlwe::EvaluationKeySet kNone;
  const auto slots = std::make_shared<rlwe::KeySlots>(
      *stream, lender.keys.data() ? lender.keys.data()->set : kNone);
  state_.reset(new State(Evaluator(std::make_shared<Evaluator::State>(
                             Evaluator::State{lender.context, EvaluationKeys(), stream, slots})),
                         slots, inputs));
  State* s = state_.get();
  s->run = [s, f] {
    s->outputs.clear();
    s->outputs = f(s->evaluator, s->inputs);
    for (const Ciphertext& out : s->outputs)
      expect_same_secret_key(out.secret_key_id(), s->anyone, "graph output", "its inputs");
  };
  // The first run must read keys: all of them, since which are in use is not known yet.
  if (lender.source) slots->bind_all(*stream, *lender.source);
  s->exec = stream->capture(s->run);
  s->exec->launch(*stream);
  lender.stream->wait_for(*stream);
  stream->trim();
}

Graph::Graph(Graph&&) noexcept = default;
Graph::~Graph() {
  if (!state_) return;
  // Work in flight still writes to the recorded addresses.
  const watch::Shield shield;
  try {
    state_->last->synchronize();
  } catch (...) {  // NOLINT(bugprone-empty-catch): a device that failed writes no more
  }
}

void Graph::State::expect_signature(std::span<const Ciphertext* const> found) const {
  if (found.size() != inputs.size())
    throw StateError(cat("graph got ", found.size(), " inputs, recorded with ", inputs.size()),
                     {{"inputs", found.size()}, {"expected", inputs.size()}});
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto &a = *found[i], &b = inputs[i];
    evaluator.state().check(a);
    expect_same_secret_key(a.secret_key_id(), (slots ? *found[0] : b).secret_key_id(),
                           "graph input", slots ? "the first" : "recorded with one");
    expect_equal(i, "level", a.level(), b.level());
    if (!scales_agree(a.scale(), b.scale())) expect_equal(i, "scale", a.scale(), b.scale());
    expect_equal(i, "slots", a.slots(), b.slots());
    expect_equal(i, "batch", a.batch(), b.batch());
    expect_equal(i, "components", a.components(), b.components());
    if (b.metadata().real && !a.metadata().real)  // the recorded outputs may claim to be real
      throw StateError(cat("graph input ", i, " has complex slots, recorded with real ones"),
                       {{"input", i}, {"real", false}, {"expected", true}});
    if (!(a.bound() <= b.bound()))  // those of the recorded outputs rest on it
      throw StateError(cat("graph input ", i, " has bound ", a.bound(), ", recorded with ",
                           b.bound(), "; expected at most that"),
                       {{"input", i}, {"bound", a.bound()}, {"expected", b.bound()}});
  }
}

// The signature was checked.
std::vector<Ciphertext> Graph::State::replay(const Evaluator::State& with,
                                             std::span<const Ciphertext* const> in) {
  device::Stream& stream = *with.stream;
  for (std::size_t i = 0; i < in.size(); ++i)
    stream.copy(inputs[i].data().poly.data(), in[i]->data().poly.data(),
                in[i]->data().poly.bytes());
  exec->launch(stream);
  std::vector<Ciphertext> copies;
  for (const Ciphertext& output : outputs) copies.push_back(with.copy(output));
  return copies;
}

std::vector<Ciphertext> Graph::replay(std::span<const Ciphertext> inputs) {
  return replay(std::span<const Ciphertext* const>(pointers_to(inputs)));
}

std::vector<Ciphertext> Graph::replay(std::span<const Ciphertext* const> inputs) {
  State& s = *state_;
  if (s.slots)
    throw StateError(
        "replay without keys of a graph whose keys are an argument; pass the evaluator",
        {{"expected", "an evaluator"}});
  s.expect_signature(inputs);
  const Evaluator::State& with = s.evaluator.state();
  expect_eager(*with.stream);
  const auto lock = watch::lock(s.mutex);
  return s.replay(with, inputs);
}

bool Graph::serves(const Evaluator& evaluator) const {
  if (!state_->slots) return false;
  const std::vector<rlwe::KeyId> used = state_->slots->used();
  const auto there = [&](rlwe::KeyId id) { return evaluator.state().has_key(id); };
  return std::all_of(used.begin(), used.end(), there);
}

std::vector<Ciphertext> Graph::replay(const Evaluator& evaluator,
                                      std::span<const Ciphertext> inputs) {
  return replay(evaluator, std::span<const Ciphertext* const>(pointers_to(inputs)));
}

std::vector<Ciphertext> Graph::replay(const Evaluator& evaluator,
                                      std::span<const Ciphertext* const> inputs) {
  State& s = *state_;
  if (!s.slots)
    throw StateError("replay with keys of a graph that was recorded with its own",
                     {{"expected", "a function of the evaluator"}});
  s.expect_signature(inputs);
  const Evaluator::State& with = evaluator.state();
  with.check_serves(s.evaluator.context());
  for (const Ciphertext* input : inputs) with.check(*input);
  with.expect_keys(s.slots->used(), "replay of this graph");
  expect_eager(*with.stream);
  const auto lock = watch::lock(s.mutex);
  if (with.stream != s.last) with.stream->wait_for(*s.last);  // one replay after the other
  s.last = with.stream;
  if (with.source) s.slots->bind(*with.stream, *with.source);
  std::vector<Ciphertext> copies = s.replay(with, inputs);
  for (Ciphertext& copy : copies)
    copy.data().meta.secret_key =
        inputs.empty() ? with.keys.secret_key_id() : inputs[0]->secret_key_id();
  return copies;
}

}  // namespace crenel::ckks
