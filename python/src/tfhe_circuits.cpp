// Circuits of several operations on encrypted integers; crenel.tfhe.circuits describes them by
// running a program once on values.
#include <nanobind/stl/tuple.h>

#include <functional>

#include "crenel/tfhe/integer_circuit.h"
#include "tfhe_operations.h"

namespace crenel::python {
namespace {

using tfhe::IntegerCircuit;
using Value = IntegerCircuit::Value;

struct Described {
  using Self = IntegerCircuit;
  using Operand = IntegerCircuit::Operand;
  using Integers = Value;
  using Bits = Value;
  using Guard = nb::call_guard<>;
  static constexpr const char* kIntegers = "a value of a circuit";
  static constexpr bool kRounds = false;
  static constexpr std::identity value{};
  template <class Result>
  static Result result(const Self&, Result&& made) {
    return std::forward<Result>(made);
  }
};
using CircuitClass = IntegerOperations<Described>::Class;

void bind_others(CircuitClass& c) {
  using C = IntegerCircuit;
  c.def("invert", &C::not_, "a"_a)
      .def(
          "gate",
          [](C& circuit, const std::string& name, const std::vector<Value>& bits) {
            return circuit.gate(tfhe::gate_from_string(name), bits);
          },
          "name"_a, "bits"_a)
      .def("integers", &C::integers, "bits"_a, "signed"_a)
      .def("bit", &C::bit)
      .def("output", &C::output, "value"_a)
      .def(
          "cost",
          [](const C& circuit, const std::string& form, u64 size, u32 processors, double max_norm2,
             bool free_outputs) {
            const auto cost = circuit.cost(tfhe::circuit_form_from_string(form), size, processors,
                                           max_norm2, free_outputs);
            return std::make_tuple(cost.bootstraps, cost.key_switches, cost.depth, cost.rounds);
          },
          "form"_a, "size"_a, "processors"_a, "max_norm2"_a, "free_outputs"_a);
}

}  // namespace

std::vector<CircuitArray> run_circuit(const tfhe::IntegerEvaluator& ev,
                                      const IntegerCircuit& circuit,
                                      const std::vector<CircuitArrayRef>& arrays) {
  std::vector<tfhe::CircuitInput> inputs;
  for (const CircuitArrayRef& array : arrays)
    std::visit(
        [&](const auto* x) {
          if (x == nullptr) throw nb::type_error("expected encrypted arrays, got None");
          inputs.emplace_back(&x->value);
        },
        array);
  std::vector<CircuitArray> results;
  for (tfhe::CircuitOutput& output : ev.run(circuit, inputs)) {
    if (auto* integers = std::get_if<tfhe::Integers>(&output))
      results.emplace_back(TfheIntegers{ev.evaluator().context(), std::move(*integers)});
    else
      results.emplace_back(
          TfheCiphertext{ev.evaluator().context(), std::move(std::get<tfhe::Ciphertext>(output))});
  }
  return results;
}

void bind_tfhe_circuits(nb::module_& m) {
  nb::class_<Value>(m, "TfheCircuitValue", "A value of a circuit: integers, or bits with bits 0.")
      .def_prop_ro("bits", [](const Value& v) { return v.type().bits; })
      .def_prop_ro("signed", [](const Value& v) { return v.type().is_signed; });
  CircuitClass c(m, "TfheIntegerCircuit",
                 "Operations on encrypted integers that are run as one circuit.");
  c.def(nb::init<>());
  IntegerOperations<Described>(c).bind();
  bind_others(c);
}

}  // namespace crenel::python
