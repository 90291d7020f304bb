// Shared pieces of the TFHE bindings: plain classes Tfhe*, which crenel.tfhe dresses with shapes,
// types and operators.
#pragma once

#include <variant>

#include "arrays.h"
#include "crenel/tfhe/integer.h"
#include "crenel/tfhe/serialize.h"
#include "crenel/tfhe/steps.h"

namespace crenel::python {

void bind_tfhe(nb::module_& m);
void bind_tfhe_params(nb::module_& m);
void bind_tfhe_objects(nb::module_& m);
void bind_tfhe_evaluator(nb::module_& m);
void bind_tfhe_integers(nb::module_& m);
void bind_tfhe_circuits(nb::module_& m);
void bind_bridge(nb::module_& m);  ///< between CKKS and TFHE

/// The comparison of this name; ParameterError for any other.
tfhe::Comparison comparison(const std::string& name);

/// A tfhe::StepTable as pairs of rotations and step.
using Rules = std::vector<std::pair<u64, u32>>;
inline tfhe::StepTable from_rules(const Rules& rules) {
  tfhe::StepTable table;
  for (const auto& [rotations, step] : rules) table.push_back({rotations, step});
  return table;
}
inline Rules to_rules(const tfhe::StepTable& table) {
  Rules rules;
  for (const tfhe::StepRule& rule : table) rules.emplace_back(rule.rotations, rule.step);
  return rules;
}

inline tfhe::StoredForm stored_form(bool lists) {
  return lists ? tfhe::StoredForm::lists : tfhe::StoredForm::switched;
}

using TfheCiphertext = Bound<tfhe::Ciphertext, tfhe::Context>;
using TfheIntegers = Bound<tfhe::Integers, tfhe::Context>;
using TfheCompressed = Bound<tfhe::Compressed, tfhe::Context>;
using TfheKeys = Bound<tfhe::EvaluationKeys, tfhe::Context>;

/// What arrays of one kind hold; TypeError for None, which nanobind lets into a list.
template <class T>
std::vector<const T*> values_of(const std::vector<const Bound<T, tfhe::Context>*>& parts) {
  std::vector<const T*> values;
  for (const auto* part : parts) {
    if (part == nullptr) throw nb::type_error("expected encrypted arrays, got None");
    values.push_back(&part->value);
  }
  return values;
}

/// Arrays that a circuit takes and gives.
using CircuitArrayRef = std::variant<const TfheIntegers*, const TfheCiphertext*>;
using CircuitArray = std::variant<TfheIntegers, TfheCiphertext>;
std::vector<CircuitArray> run_circuit(const tfhe::IntegerEvaluator& ev,
                                      const tfhe::IntegerCircuit& circuit,
                                      const std::vector<CircuitArrayRef>& arrays);

}  // namespace crenel::python

// A vector of move-only blocks claims to be copyable.
template <>
struct nanobind::detail::is_copy_constructible<crenel::python::TfheIntegers> : std::false_type {};
