// Shared pieces of the TFHE bindings: plain classes Tfhe*, which crenel.tfhe dresses with shapes,
// types and operators.
#pragma once

#include "arrays.h"
#include "crenel/tfhe/integer.h"
#include "crenel/tfhe/serialize.h"

namespace crenel::python {

void bind_tfhe(nb::module_& m);
void bind_tfhe_params(nb::module_& m);
void bind_tfhe_objects(nb::module_& m);
void bind_tfhe_evaluator(nb::module_& m);
void bind_tfhe_integers(nb::module_& m);
void bind_bridge(nb::module_& m);  ///< between CKKS and TFHE

/// The comparison of this name; ParameterError for any other.
tfhe::Comparison comparison(const std::string& name);

using TfheCiphertext = Bound<tfhe::Ciphertext, tfhe::Context>;
using TfheIntegers = Bound<tfhe::Integers, tfhe::Context>;
using TfheKeys = Bound<tfhe::EvaluationKeys, tfhe::Context>;

}  // namespace crenel::python

// A vector of move-only blocks claims to be copyable.
template <>
struct nanobind::detail::is_copy_constructible<crenel::python::TfheIntegers> : std::false_type {};
