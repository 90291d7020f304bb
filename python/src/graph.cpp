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

  Inputs operator()(const ckks::Evaluator* ev, std::span<const ckks::Ciphertext> inputs) const;
};

// Python objects own what they hold, so recorded ciphertexts go in and come out as copies.
Inputs copies(nb::handle ciphertexts) {
  Inputs result;
  for (nb::handle item : ciphertexts) result.push_back(as_ciphertext(item).clone());
  return result;
}

Inputs Body::operator()(const ckks::Evaluator* ev, std::span<const ckks::Ciphertext> inputs) const {
  nb::gil_scoped_acquire acquire;
  nb::list arguments;
  if (ev) arguments.append(nb::cast(ckks::Evaluator(*ev)));
  for (const ckks::Ciphertext& input : inputs)
    arguments.append(nb::cast(Ciphertext{context, input.clone()}));
  const nb::object result = (*function)(*nb::tuple(arguments));
  *single = !nb::isinstance<nb::list>(result) && !nb::isinstance<nb::tuple>(result);
  return *single ? copies(nb::make_tuple(result)) : copies(result);
}

void record(Recording* self, const ckks::Evaluator& ev, nb::object function, nb::args inputs,
            const std::string& keys) {
  const Inputs recorded = copies(inputs);
  const bool argument = from_name(kKeys, keys, "keys") == Keys::argument;
  const std::shared_ptr<nb::object> shared(new nb::object(std::move(function)), [](nb::object* f) {
    nb::gil_scoped_acquire acquire;
    delete f;
  });
  const Body body{ev.context(), shared, std::make_shared<bool>(false)};
  ckks::Graph graph = released([&] {
    if (argument)
      return ckks::Graph(ev, recorded,
                         ckks::Graph::KeyedFunction([body](const ckks::Evaluator& with, auto in) {
                           return body(&with, in);
                         }));
    return ckks::Graph(ev, recorded,
                       ckks::Graph::Function([body](auto in) { return body(nullptr, in); }));
  });
  new (self) Recording{body.context, body.single, std::move(graph)};
}

nb::object replay(Recording& self, nb::args inputs, const ckks::Evaluator* evaluator) {
  std::vector<const ckks::Ciphertext*> given;  // `inputs` keeps the objects alive
  for (nb::handle item : inputs) given.push_back(&as_ciphertext(item));
  const std::span<const ckks::Ciphertext* const> span(given);
  std::vector<Ciphertext> outputs;
  released([&] {
    std::vector<ckks::Ciphertext> results =
        evaluator ? self.graph.replay(*evaluator, span) : self.graph.replay(span);
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
      "called again. The function must do evaluator operations only: encode what it needs before.\n"
      "Any number of threads may call one graph, each gets the results of its own inputs and "
      "keys;\n"
      "and others may compute while one is recorded: their work is no part of it.")
      .def("__init__", &record, "evaluator"_a, "function"_a, "inputs"_a, "keys"_a = "recorded",
           nb::sig("def __init__(self, evaluator: Evaluator, "
                   "function: collections.abc.Callable[..., Ciphertext | Operand | "
                   "collections.abc.Sequence[Ciphertext | Operand]], "
                   "*inputs: Ciphertext | Operand, "
                   "keys: typing.Literal['recorded', 'argument'] = 'recorded') -> None"),
           "Record function(*inputs), with the keys that it uses. With keys='argument' the keys "
           "are\n"
           "those of each call: record function(evaluator, *inputs), which must use the evaluator\n"
           "that it is given and no other. Raises StateError for staged keys, and where the "
           "function\n"
           "calls a graph, records one or reads results.")
      .def("__call__", &replay, "inputs"_a, "evaluator"_a = nb::none(),
           nb::sig("def __call__(self, *inputs: Ciphertext | Operand, "
                   "evaluator: Evaluator | None = None) -> Result"),
           "Replay on new inputs; returns what the function returned, as new ciphertexts.\n\n"
           "evaluator : whose keys are used; required with keys='argument', refused without\n\n"
           "Raises StateError naming the first difference between an input and the signature, and\n"
           "KeyMissingError naming every key that the recording used and the evaluator lacks.");
}

}  // namespace crenel::python
