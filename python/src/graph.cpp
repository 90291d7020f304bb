// Graph: record an evaluation once, replay it on new inputs without the cost of launching its
// parts.
#include <functional>
#include <memory>

#include "arrays.h"

namespace crenel::python {
namespace {

using Inputs = std::vector<ckks::Ciphertext>;

/// A recorded Python function, and whether it returned one ciphertext or a sequence.
struct Recording {
  ckks::Context context;
  std::shared_ptr<bool> single;
  ckks::Graph graph;
};

// Python objects own what they hold, so recorded ciphertexts go in and come out as copies.
Inputs copies(nb::handle ciphertexts) {
  Inputs result;
  for (nb::handle item : ciphertexts) result.push_back(as_ciphertext(item).value.clone());
  return result;
}

nb::object call_recorded(const nb::object& function, const ckks::Context& context,
                         std::span<const ckks::Ciphertext> inputs) {
  nb::list arguments;
  for (const ckks::Ciphertext& input : inputs)
    arguments.append(nb::cast(Ciphertext{context, input.clone()}));
  return function(*nb::tuple(arguments));
}

void record(Recording* self, const ckks::Evaluator& ev, nb::object function, nb::args inputs) {
  const Inputs recorded = copies(inputs);
  const auto single = std::make_shared<bool>(false);
  const ckks::Context context = ev.context();
  const std::shared_ptr<nb::object> shared(new nb::object(std::move(function)), [](nb::object* f) {
    nb::gil_scoped_acquire acquire;
    delete f;
  });
  const ckks::Graph::Function body = [=](std::span<const ckks::Ciphertext> arguments) {
    nb::gil_scoped_acquire acquire;
    const nb::object result = call_recorded(*shared, context, arguments);
    *single = !nb::isinstance<nb::list>(result) && !nb::isinstance<nb::tuple>(result);
    return *single ? copies(nb::make_tuple(result)) : copies(result);
  };
  ckks::Graph graph = released([&] { return ckks::Graph(ev, recorded, body); });
  new (self) Recording{context, single, std::move(graph)};
}

nb::object replay(Recording& self, nb::args inputs) {
  std::vector<const ckks::Ciphertext*> given;  // `inputs` keeps the objects alive
  for (nb::handle item : inputs) given.push_back(&as_ciphertext(item).value);
  std::vector<Ciphertext> outputs;
  released([&] {
    for (const ckks::Ciphertext& output :
         self.graph.replay(std::span<const ckks::Ciphertext* const>(given)))
      outputs.push_back(Ciphertext{self.context, output.clone()});
  });
  return *self.single ? nb::cast(std::move(outputs.front())) : nb::cast(std::move(outputs));
}

}  // namespace

void bind_graph(nb::module_& m) {
  nb::class_<Recording>(
      m, "Graph",
      "A recorded evaluation: run once to record, called with new inputs of the same signature\n"
      "(level, scale, slots and batch). On a GPU this is a CUDA graph; elsewhere the function is\n"
      "called again. The function must do evaluator operations only: encode what it needs before.\n"
      "While a graph is recorded, no other thread may use its context.")
      .def("__init__", &record, "evaluator"_a, "function"_a, "inputs"_a,
           nb::sig("def __init__(self, evaluator: Evaluator, "
                   "function: collections.abc.Callable[..., Ciphertext | crenel.operand.Operand | "
                   "collections.abc.Sequence[Ciphertext | crenel.operand.Operand]], "
                   "*inputs: Ciphertext | crenel.operand.Operand) -> None"),
           "Record function(*inputs).")
      .def("__call__", &replay, "inputs"_a,
           nb::sig("def __call__(self, *inputs: Ciphertext | crenel.operand.Operand) -> "
                   "Ciphertext | list[Ciphertext]"),
           "Replay on new inputs; returns what the function returned, as new ciphertexts.\n\n"
           "Raises StateError naming the first difference between an input and the signature.");
}

}  // namespace crenel::python
