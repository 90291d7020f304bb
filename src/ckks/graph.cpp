// Graph: record an evaluation once, replay it on new inputs and with other keys.
#include <algorithm>
#include <mutex>
#include <optional>

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
  std::vector<Plaintext> plaintexts;        ///< likewise
  std::vector<Ciphertext> outputs;          ///< written by every replay
  std::unique_ptr<device::GraphExec> exec;  ///< last member: released before the memory it uses

  State(Evaluator ev, std::shared_ptr<rlwe::KeySlots> key_slots, std::span<const Ciphertext> in,
        Plaintexts plain);
  void expect_signature(Inputs found, Plaintexts plain) const;
  /// With the mutex held. The results are copies: the next replay overwrites what this one wrote.
  std::vector<Ciphertext> replay(const Evaluator::State& with, Inputs in, Plaintexts plain);
};

Graph::State::State(Evaluator ev, std::shared_ptr<rlwe::KeySlots> key_slots,
                    std::span<const Ciphertext> in, Plaintexts plain)
    : evaluator(std::move(ev)), slots(std::move(key_slots)), last(evaluator.state().stream) {
  for (const auto& input : in) {
    evaluator.state().check(input);
    inputs.push_back(evaluator.state().copy(input));  // forgets the seed: data changes
    if (slots) inputs.back().data().meta.secret_key = anyone;
  }
  for (const Plaintext* one : plain) {
    evaluator.state().check(*one);
    const Plaintext::Data& from = one->data();
    auto data = std::make_unique<Plaintext::Data>(
        Plaintext::Data{from.meta, from.params_id, from.poly.clone(*evaluator.state().stream)});
    data->stated = from.stated;
    if (!from.stated) data->meta.bound = kUnknownBound;
    plaintexts.emplace_back(std::move(data));
  }
}

namespace {

std::vector<const Ciphertext*> pointers_to(std::span<const Ciphertext> inputs) {
  std::vector<const Ciphertext*> pointers;
  for (const auto& input : inputs) pointers.push_back(&input);
  return pointers;
}

// Of a key for all levels the top one.
u32 known_level(const Params& params, u32 level) {
  return level == rlwe::SwitchKey::kAny ? params.max_level() : level;
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

// `kind`: "input" or "plaintext".
void expect_equal(const char* kind, std::size_t index, const char* what, double found,
                  double expected) {
  if (found != expected)
    throw StateError(
        cat("graph ", kind, " ", index, " has ", what, " ", found, ", recorded with ", expected),
        {{kind, index}, {what, found}, {"expected", expected}});
}

void expect_metadata(const char* kind, std::size_t index, const Metadata& found,
                     const Metadata& recorded) {
  expect_equal(kind, index, "level", found.level, recorded.level);
  if (!scales_agree(found.scale, recorded.scale))
    expect_equal(kind, index, "scale", found.scale, recorded.scale);
  expect_equal(kind, index, "slots", static_cast<double>(found.slots),
               static_cast<double>(recorded.slots));
}

// That the recorded outputs may claim to be real, and their bounds, rest on these.
void expect_values(const char* kind, std::size_t index, const Metadata& found,
                   const Metadata& recorded) {
  if (recorded.real && !found.real)
    throw StateError(cat("graph ", kind, " ", index, " has complex slots, recorded with real ones"),
                     {{kind, index}, {"real", false}, {"expected", true}});
  if (!(found.bound <= recorded.bound))
    throw StateError(cat("graph ", kind, " ", index, " has bound ", found.bound, ", recorded with ",
                         recorded.bound, "; expected at most that"),
                     {{kind, index}, {"bound", found.bound}, {"expected", recorded.bound}});
}

}  // namespace

Graph::Graph(const Evaluator& evaluator, std::span<const Ciphertext> inputs, const Function& f)
    : Graph(evaluator, inputs, {}, PlainFunction([f](auto in, auto) { return f(in); })) {}

Graph::Graph(const Evaluator& evaluator, std::span<const Ciphertext> inputs, const KeyedFunction& f)
    : Graph(evaluator, inputs, {},
            KeyedPlainFunction([f](const auto& ev, auto in, auto) { return f(ev, in); })) {}

Graph::Graph(const Evaluator& evaluator, std::span<const Ciphertext> inputs, Plaintexts plaintexts,
             const PlainFunction& f)
    : state_(new State(evaluator, nullptr, inputs, plaintexts)) {
  expect_fixed(evaluator.state().source);
  State* s = state_.get();
  s->run = [s, f] {
    s->outputs.clear();  // first: its memory serves this run
    s->outputs = f(s->inputs, s->plaintexts);
  };
  s->exec = evaluator.stream().capture(s->run);
  s->exec->launch(evaluator.stream());  // outputs of the recording are written from now on
}

Graph::Graph(const Evaluator& evaluator, std::span<const Ciphertext> inputs, Plaintexts plaintexts,
             const KeyedPlainFunction& f) {
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
                         slots, inputs, plaintexts));
  State* s = state_.get();
  s->run = [s, f] {
    s->outputs.clear();
    s->outputs = f(s->evaluator, s->inputs, s->plaintexts);
    for (const Ciphertext& out : s->outputs)
      expect_same_secret_key(out.secret_key_id(), s->anyone, "graph output", "its inputs");
  };
  // The first run must read keys: all of them, since which are in use is not known yet.
  std::optional<rlwe::KeyLease> held;  // until the work is queued
  if (lender.source) held = slots->bind_all(*stream, *lender.source);
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

void Graph::State::expect_signature(Inputs found, Plaintexts plain) const {
  const auto expect_count = [](const char* what, std::size_t count, std::size_t expected) {
    if (count != expected)
      throw StateError(cat("graph got ", count, " ", what, ", recorded with ", expected),
                       {{what, count}, {"expected", expected}});
  };
  expect_count("inputs", found.size(), inputs.size());
  expect_count("plaintexts", plain.size(), plaintexts.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto &a = *found[i], &b = inputs[i];
    evaluator.state().check(a);
    expect_same_secret_key(a.secret_key_id(), (slots ? *found[0] : b).secret_key_id(),
                           "graph input", slots ? "the first" : "recorded with one");
    expect_metadata("input", i, a.metadata(), b.metadata());
    expect_equal("input", i, "batch", a.batch(), b.batch());
    expect_equal("input", i, "components", a.components(), b.components());
    expect_values("input", i, a.metadata(), b.metadata());
  }
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const auto &a = *plain[i], &b = plaintexts[i];
    evaluator.state().check(a);
    expect_metadata("plaintext", i, a.metadata(), b.metadata());
    expect_equal("plaintext", i, "batch", a.data().poly.shape().batch, b.data().poly.shape().batch);
    expect_values("plaintext", i, a.metadata(), b.metadata());
  }
}

// The signature was checked.
std::vector<Ciphertext> Graph::State::replay(const Evaluator::State& with, Inputs in,
                                             Plaintexts plain) {
  device::Stream& stream = *with.stream;
  const auto copy = [&](const rlwe::Poly& to, const rlwe::Poly& from) {
    stream.copy(to.data(), from.data(), from.bytes());
  };
  for (std::size_t i = 0; i < in.size(); ++i) copy(inputs[i].data().poly, in[i]->data().poly);
  for (std::size_t i = 0; i < plain.size(); ++i)
    copy(plaintexts[i].data().poly, plain[i]->data().poly);
  exec->launch(stream);
  std::vector<Ciphertext> copies;
  for (const Ciphertext& output : outputs) copies.push_back(with.copy(output));
  return copies;
}

std::vector<Ciphertext> Graph::replay(std::span<const Ciphertext> inputs) {
  return replay(Inputs(pointers_to(inputs)));
}

std::vector<Ciphertext> Graph::replay(Inputs inputs, Plaintexts plaintexts) {
  State& s = *state_;
  if (s.slots)
    throw StateError(
        "replay without keys of a graph whose keys are an argument; pass the evaluator",
        {{"expected", "an evaluator"}});
  s.expect_signature(inputs, plaintexts);
  const Evaluator::State& with = s.evaluator.state();
  expect_eager(*with.stream);
  const auto lock = watch::lock(s.mutex);
  return s.replay(with, inputs, plaintexts);
}

bool Graph::serves(const Evaluator& evaluator) const {
  if (!state_->slots) return false;
  if (evaluator.state().source) return state_->slots->fit(*evaluator.state().source);
  return state_->slots->used().empty();
}

std::vector<Ciphertext> Graph::replay(const Evaluator& evaluator,
                                      std::span<const Ciphertext> inputs) {
  return replay(evaluator, Inputs(pointers_to(inputs)));
}

std::vector<Ciphertext> Graph::replay(const Evaluator& evaluator, Inputs inputs,
                                      Plaintexts plaintexts) {
  State& s = *state_;
  if (!s.slots)
    throw StateError("replay with keys of a graph that was recorded with its own",
                     {{"expected", "a function of the evaluator"}});
  s.expect_signature(inputs, plaintexts);
  const Evaluator::State& with = evaluator.state();
  with.check_serves(s.evaluator.context());
  for (const Ciphertext* input : inputs) with.check(*input);
  for (const Plaintext* one : plaintexts) with.check(*one);
  KeyDemand demand(with.params().log_n());
  for (rlwe::KeyId id : s.slots->used())  // of the levels that it was recorded with
    demand.key(id,
               {known_level(with.params(), s.slots->max_level(id).value()), with.key_level(id)});
  demand.expect("replay of this graph");
  expect_eager(*with.stream);
  const auto lock = watch::lock(s.mutex);
  if (with.stream != s.last) with.stream->wait_for(*s.last);  // one replay after the other
  s.last = with.stream;
  std::optional<rlwe::KeyLease> held;  // staged keys may go once the replay is queued
  if (with.source) held = s.slots->bind(*with.stream, *with.source);
  std::vector<Ciphertext> copies = s.replay(with, inputs, plaintexts);
  for (Ciphertext& copy : copies)
    copy.data().meta.secret_key =
        inputs.empty() ? with.keys.secret_key_id() : inputs[0]->secret_key_id();
  return copies;
}

}  // namespace crenel::ckks
