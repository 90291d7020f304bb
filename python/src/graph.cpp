// Graph: record an evaluation once, replay it on new inputs without the cost of launching its
// parts.
#include <functional>
#include <memory>

#include "arrays.h"
#include "names.h"

namespace crenel::python {
namespace {

using Inputs = std::vector<ckks::Ciphertext>;

enum class Keys { recorded, argument };
constexpr Names<Keys, 2> kKeys{{{"recorded", Keys::recorded}, {"argument", Keys::argument}}};

/// A recorded Python function, and whether it returned one ciphertext or a sequence.
struct Recording {
  ckks::Context context;
  std::shared_ptr<bool> single;
  ckks::Graph graph;
};

/// What is called to record: with the evaluator first where keys are an argument.
struct Body {
  ckks::Context context;
  std::shared_ptr<nb::object> function;
  std::shared_ptr<bool> single;

  Inputs operator()(const ckks::Evaluator* ev, std::span<const ckks::Ciphertext> inputs,
                    std::span<const ckks::Plaintext> plaintexts) const;
};

// Python objects own what they hold, so recorded ciphertexts go in and come out as copies.
Inputs copies(nb::handle ciphertexts) {
  Inputs result;
  for (nb::handle item : ciphertexts) result.push_back(as_ciphertext(item).clone());
  return result;
}

/// Plaintexts of any iterable, which keeps them alive.
nb::object sequence_of(nb::handle plaintexts) {
  const nb::handle list(reinterpret_cast<PyObject*>(&PyList_Type));
  return list(plaintexts);
}

std::vector<const ckks::Plaintext*> pointers_to(const nb::object& plaintexts) {
  std::vector<const ckks::Plaintext*> result;
  for (nb::handle item : plaintexts) {
    if (!nb::isinstance<Plaintext>(item)) refuse_type("a plaintext", item);
    result.push_back(&nb::cast<const Plaintext&>(item).value);
  }
  return result;
}

Inputs Body::operator()(const ckks::Evaluator* ev, std::span<const ckks::Ciphertext> inputs,
                        std::span<const ckks::Plaintext> plaintexts) const {
  nb::gil_scoped_acquire acquire;
  nb::list arguments;
  if (ev) arguments.append(nb::cast(ckks::Evaluator(*ev)));
  for (const ckks::Ciphertext& input : inputs)
    arguments.append(nb::cast(Ciphertext{context, input.clone()}));
  for (const ckks::Plaintext& plaintext : plaintexts)
    arguments.append(nb::cast(Plaintext{context, plaintext.clone()}));
  const nb::object result = (*function)(*nb::tuple(arguments));
  *single = !nb::isinstance<nb::list>(result) && !nb::isinstance<nb::tuple>(result);
  return *single ? copies(nb::make_tuple(result)) : copies(result);
}

void record(Recording* self, const ckks::Evaluator& ev, nb::object function, nb::args inputs,
            nb::handle plaintexts, const std::string& keys) {
  const Inputs recorded = copies(inputs);
  const nb::object kept = sequence_of(plaintexts);
  const std::vector<const ckks::Plaintext*> plain = pointers_to(kept);
  const bool argument = from_name(kKeys, keys, "keys") == Keys::argument;
  const std::shared_ptr<nb::object> shared(new nb::object(std::move(function)), [](nb::object* f) {
    nb::gil_scoped_acquire acquire;
    delete f;
  });
  const Body body{ev.context(), shared, std::make_shared<bool>(false)};
  ckks::Graph graph = released([&] {
    if (argument)
      return ckks::Graph(
          ev, recorded, plain,
          ckks::Graph::KeyedPlainFunction([body](const ckks::Evaluator& with, auto in, auto given) {
            return body(&with, in, given);
          }));
    return ckks::Graph(ev, recorded, plain, ckks::Graph::PlainFunction([body](auto in, auto given) {
                         return body(nullptr, in, given);
                       }));
  });
  new (self) Recording{body.context, body.single, std::move(graph)};
}

nb::object replay(Recording& self, nb::args inputs, nb::handle plaintexts,
                  const ckks::Evaluator* evaluator) {
  std::vector<const ckks::Ciphertext*> given;  // `inputs` keeps the objects alive
  for (nb::handle item : inputs) given.push_back(&as_ciphertext(item));
  const ckks::Graph::Inputs span(given);
  const nb::object kept = sequence_of(plaintexts);
  const std::vector<const ckks::Plaintext*> plain = pointers_to(kept);
  std::vector<Ciphertext> outputs;
  released([&] {
    std::vector<ckks::Ciphertext> results =
        evaluator ? self.graph.replay(*evaluator, span, plain) : self.graph.replay(span, plain);
    for (ckks::Ciphertext& output : results) outputs.emplace_back(self.context, std::move(output));
  });
  return *self.single ? nb::cast(std::move(outputs.front())) : nb::cast(std::move(outputs));
}

}  // namespace

void bind_graph(nb::module_& m) {
  nb::class_<Recording>(
      m, "Graph", nb::is_generic(), nb::sig("class Graph(typing.Generic[Result])"),
      "A recorded evaluation: run once to record, called with new inputs of the same signature\n"
      "(level, scale, slots and batch; a bound at most the recorded one). On a GPU this is a CUDA "
      "graph; elsewhere the function is\n"
      "called again. A whole program may be one, bootstraps and linear transforms included. The "
      "function\n"
      "must do evaluator operations only: encode what it needs before, and give plaintexts that\n"
      "change from call to call as `plaintexts`.\n"
      "Any number of threads may call one graph, each gets the results of its own inputs and "
      "keys;\n"
      "and others may compute while one is recorded: their work is no part of it.")
      .def(
          "__init__", &record, "evaluator"_a, "function"_a, "inputs"_a,
          "plaintexts"_a = nb::tuple(), "keys"_a = "recorded",
          nb::sig("def __init__(self, evaluator: Evaluator, "
                  "function: collections.abc.Callable[..., Ciphertext | Operand | "
                  "collections.abc.Sequence[Ciphertext | Operand]], "
                  "*inputs: Ciphertext | Operand, "
                  "plaintexts: collections.abc.Iterable[Plaintext] = (), "
                  "keys: typing.Literal['recorded', 'argument'] = 'recorded') -> None"),
          "Record function(*inputs, *plaintexts), with the keys that it uses. With "
          "keys='argument' the\n"
          "keys are those of each call: record function(evaluator, *inputs, *plaintexts), which "
          "must use\n"
          "the evaluator that it is given and no other.\n\n"
          "plaintexts : of context.encode, arguments of every call as the inputs are; the function "
          "sees\n"
          "    their bounds only where they were stated (encode(..., bound=))\n\n"
          "Raises StateError for staged keys, for plaintexts of a decryption, and where the "
          "function\n"
          "calls a graph, records one or reads results.")
      .def("__call__", &replay, "inputs"_a, "plaintexts"_a = nb::tuple(),
           "evaluator"_a = nb::none(),
           nb::sig("def __call__(self, *inputs: Ciphertext | Operand, "
                   "plaintexts: collections.abc.Iterable[Plaintext] = (), "
                   "evaluator: Evaluator | None = None) -> Result"),
           "Replay on new inputs; returns what the function returned, as new ciphertexts.\n\n"
           "plaintexts : as many as were recorded, each of the recorded level, scale, slots and "
           "batch\n"
           "evaluator : whose keys are used; required with keys='argument', refused without\n\n"
           "Raises StateError naming the first difference between an input or a plaintext and the\n"
           "signature, and\n"
           "KeyMissingError naming every key that the recording used and the evaluator lacks.");
}

}  // namespace crenel::python
