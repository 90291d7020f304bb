// Circuits of several operations on encrypted integers; crenel.tfhe.circuits describes them by
// running a program once on values.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include "crenel/tfhe/integer_circuit.h"
#include "tfhe.h"

namespace crenel::python {
namespace {

using tfhe::IntegerCircuit;
using Value = IntegerCircuit::Value;

/// A value, or the words of a public one as two's complement of 256 bits.
using Operand = std::variant<const Value*, std::vector<u64>>;
IntegerCircuit::Operand operand(const Operand& x) {
  if (const auto* words = std::get_if<std::vector<u64>>(&x))
    return tfhe::WideValue::of_words(
        std::span(*words).first(std::min<std::size_t>(words->size(), tfhe::WideValue::kWords)),
        true);
  const Value* value = std::get<const Value*>(x);
  if (value == nullptr) throw nb::type_error("expected a value of a circuit, got None");
  return *value;
}

using Class = nb::class_<IntegerCircuit>;
using In = const IntegerCircuit::Operand&;

template <class Result>
void binary(Class& c, const char* name, Result (IntegerCircuit::*op)(In, In)) {
  c.def(
      name,
      [op](IntegerCircuit& circuit, const Operand& a, const Operand& b) {
        return (circuit.*op)(operand(a), operand(b));
      },
      "a"_a, "b"_a);
}

template <class Result>
void division(Class& c, const char* name, Result (IntegerCircuit::*op)(In, In, bool)) {
  c.def(
      name,
      [op](IntegerCircuit& circuit, const Operand& a, const Operand& b) {
        return (circuit.*op)(operand(a), operand(b), true);
      },
      "a"_a, "b"_a);
}

using ByCount = Value (IntegerCircuit::*)(const Value&, u32);
using ByValue = Value (IntegerCircuit::*)(const Value&, const Value&);
void shift(Class& c, const char* name, ByCount by_count, ByValue by_value) {
  c.def(
       name,
       [by_count](IntegerCircuit& circuit, const Value& a, i64 count) {
         return (circuit.*by_count)(a, as_unsigned<u32>(count, "count"));
       },
       "a"_a, "count"_a)
      .def(name, by_value, "a"_a, "count"_a);
}

void unary(Class& c, const char* name, Value (IntegerCircuit::*op)(const Value&)) {
  c.def(name, op, "a"_a);
}

void bind_operations(Class& c) {
  using C = IntegerCircuit;
  binary(c, "add", &C::add);
  binary(c, "sub", &C::sub);
  binary(c, "mul", &C::mul);
  binary(c, "min", &C::min);
  binary(c, "max", &C::max);
  binary(c, "min_max", &C::min_max);
  binary(c, "bit_and", &C::bit_and);
  binary(c, "bit_or", &C::bit_or);
  binary(c, "bit_xor", &C::bit_xor);
  binary(c, "add_overflow", &C::add_overflow);
  binary(c, "sub_overflow", &C::sub_overflow);
  binary(c, "mul_overflow", &C::mul_overflow);
  division(c, "div", &C::div);
  division(c, "rem", &C::rem);
  division(c, "divmod", &C::divmod);
  shift(c, "shift_left", &C::shift_left, &C::shift_left);
  shift(c, "shift_right", &C::shift_right, &C::shift_right);
  shift(c, "rotate_left", &C::rotate_left, &C::rotate_left);
  shift(c, "rotate_right", &C::rotate_right, &C::rotate_right);
  unary(c, "neg", &C::neg);
  unary(c, "abs", &C::abs);
  unary(c, "bit_not", &C::bit_not);
  unary(c, "leading_zeros", &C::leading_zeros);
  unary(c, "trailing_zeros", &C::trailing_zeros);
  unary(c, "count_ones", &C::count_ones);
  unary(c, "invert", &C::not_);
}

void bind_others(Class& c) {
  using C = IntegerCircuit;
  c.def(
       "compare",
       [](C& circuit, const std::string& name, const Operand& a, const Operand& b) {
         return circuit.compare(comparison(name), operand(a), operand(b));
       },
       "comparison"_a, "a"_a, "b"_a)
      .def(
          "select",
          [](C& circuit, const Value& condition, const Operand& a, const Operand& b) {
            return circuit.select(condition, operand(a), operand(b));
          },
          "condition"_a, "a"_a, "b"_a)
      .def("convert", &C::convert, "a"_a, "bits"_a, "signed"_a)
      .def(
          "look_up",
          [](C& circuit, const Value& index, const Array<u64>& words, u32 bits, bool is_signed) {
            return circuit.look_up(index, as_span(words), bits, is_signed);
          },
          "index"_a, "words"_a, "bits"_a, "signed"_a)
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
  Class c(m, "TfheIntegerCircuit", "Operations on encrypted integers that are run as one circuit.");
  c.def(nb::init<>());
  bind_operations(c);
  bind_others(c);
}

}  // namespace crenel::python
