// TFHE parameters: named, checked, read from bytes. crenel.tfhe.Params is this class.
#include <cmath>

#include "crenel/tfhe/evaluator.h"
#include "tfhe.h"

namespace crenel::python {
namespace {

using tfhe::Params;

Params from_bytes(nb::handle data, bool allow_insecure, std::optional<Bytes> max_bytes) {
  const BufferView view(data, max_bytes);
  const LoadLimits limits = limits_of(max_bytes);
  std::string migration;
  Params params = released(
      [&] { return tfhe::params_from_bytes(view.bytes(), allow_insecure, limits, &migration); });
  if (!migration.empty() && PyErr_WarnEx(PyExc_UserWarning, migration.c_str(), 1) < 0)
    throw nb::python_error();
  return params;
}

nb::dict numbers(const Params& params) {
  const tfhe::Spec& s = params.spec();
  nb::dict d;
  d["lwe_dim"] = s.lwe_dim.value;
  d["glwe_dim"] = s.glwe_dim.value;
  d["poly_size"] = s.poly_size.value;
  d["log_lwe_modulus"] = s.log_lwe_modulus;
  d["path"] = s.path == tfhe::NoisePath::gadget ? "gadget" : "raising";
  d["secret"] = s.secret == tfhe::LweSecret::ternary ? "ternary" : "binary";
  d["log_modulus"] = s.log_modulus;
  d["log_raised_modulus"] = s.log_raised_modulus;
  d["base_log"] = s.base_log.value;
  d["digits"] = params.digits().value;
  d["log_switch_modulus"] = s.log_switch_modulus;
  d["switch_base_log"] = s.switch_base_log.value;
  d["switch_digits"] = params.switch_digits().value;
  d["group"] = s.group;
  d["key_group"] = s.made_group();
  d["step"] = s.step;
  d["differences"] = s.differences;
  return d;
}

// Variances at 2N, the steps that phases are read on, of a sum of squared factors `norm2`.
nb::dict noise_parts(const Params& params, double norm2) {
  if (!(norm2 >= 1) || !std::isfinite(norm2))
    throw ParameterError(cat("norm2 is ", norm2, ", expected a finite number of at least 1"),
                         {{"norm2", norm2}});
  const tfhe::Spec& s = params.spec();
  const tfhe::NoiseBudget budget = tfhe::noise_budget(params, std::sqrt(10.5));
  const double steps = 2.0 * s.poly_size.value;
  const auto at_steps = [&](double variance, u32 log_modulus) {
    const double scale = steps / std::exp2(log_modulus);
    return variance * scale * scale;
  };
  // with groups a sum is switched once, else every input was
  const double switched = s.group != 0 ? 1 : norm2;
  nb::dict d;
  d["blind rotation"] = norm2 * at_steps(budget.blind_rotation + budget.transform, s.log_modulus) +
                        norm2 * at_steps(budget.rest_rounding, s.log_lwe_modulus);
  d["key switch"] =
      switched * at_steps(budget.key_switch + budget.switch_rounding, s.log_switch_modulus);
  d["reading"] = budget.rotation_rounding;
  return d;
}

void bind_numbers(nb::class_<Params>& c) {
  c.def_prop_ro("name", &Params::name, "Name of the set.")
      .def_prop_ro("former_name", &Params::former_name,
                   "The name that the set had when its id was first made, or an empty text.\n"
                   "Files of that name and these numbers are of this set.")
      .def_prop_ro(
          "description", [](const Params& p) { return p.spec().description; },
          "What the set is for.")
      .def_prop_ro(
          "provenance", [](const Params& p) { return p.spec().provenance; },
          "Where the numbers come from.")
      .def_prop_ro(
          "slots", [](const Params& p) { return p.slots().value; },
          "Messages under a mask, 1 to 16.")
      .def_prop_ro(
          "arithmetic", [](const Params& p) { return tfhe::to_string(p.arithmetic()); },
          "'exact': integers; 'approx': double-precision transforms; 'split': transforms of\n"
          "digits in two pieces. Each gives the same bits on every device.")
      .def_prop_ro(
          "plain_modulus", [](const Params& p) { return p.spec().plain_modulus; },
          "p: messages are residues modulo p, a message m stands at m q / p.")
      .def_prop_ro(
          "padded", [](const Params& p) { return p.spec().padded; },
          "Messages stay below p / 2, so that any table takes one bootstrap.")
      .def_prop_ro(
          "max_norm2", [](const Params& p) { return p.spec().max_norm2; },
          "Sum of squared factors of bootstrapped inputs that p_fail_log2 is stated for.")
      .def_prop_ro(
          "paper", [](const Params& p) { return p.spec().paper; },
          "For the reproduction of published figures, not for use.")
      .def_prop_ro("primes", &Params::primes,
                   "Primes of Q (gadget decomposition) or T (modulus raising).")
      .def_prop_ro("p_fail_log2", &Params::p_fail_log2,
                   "log2 of the bound on the failure probability of one bootstrap: of gates of\n"
                   "two inputs and of sums up to max_norm2, where inputs are fresh or\n"
                   "bootstrapped. Evaluator.p_fail_log2 has it for every operation.")
      .def_prop_ro("security_bits", &Params::security_bits,
                   "Security in bits by the lattice estimator, or interpolated from it\n"
                   "(docs/design/0011): what the set claims, but never more than the library\n"
                   "knows of its numbers.")
      .def_prop_ro("below_norm", &Params::below_norm,
                   "p_fail above 2^-128, or security below 128 bits.")
      .def_prop_ro("warning", &Params::warning,
                   "What is below today's norm, in one sentence, or an empty text.")
      .def_prop_ro("numbers", &numbers, nb::sig("def numbers(self) -> dict[str, int | str]"),
                   "Dimensions, moduli (log2) and bases of the set.")
      .def_prop_ro("id", &Params::id, "Content hash carried by every object and file.")
      .def(
          "noise_parts", &noise_parts, "norm2"_a,
          nb::sig("def noise_parts(self, norm2: float) -> dict[str, float]"),
          "What a sum of bootstrapped inputs, of so many squared factors, is read with: variances\n"
          "in steps of which a turn has 2 N, by where they come from. Messages modulo p lie\n"
          "2 N / p steps apart, so that half of that is the margin (docs/theory/tfhe.md, \"Noise "
          "of\n"
          "a bootstrap\"). Raises ParameterError for norm2 below 1.");
}

void bind_methods(nb::class_<Params>& c) {
  bind_value_methods(c);
  c.def(
       "with_slots",
       [](const Params& p, i64 slots) {
         return p.with_slots(tfhe::SlotCount(as_unsigned<u32>(slots, "slots")));
       },
       "slots"_a, "The same set with this many messages under each mask, 1 to 16.")
      .def(
          "with_arithmetic",
          [](const Params& p, const std::string& arithmetic) {
            return p.with_arithmetic(tfhe::arithmetic_from_string(arithmetic));
          },
          "arithmetic"_a,
          "The same set with 'exact', 'approx' or 'split' arithmetic. Raises UnsupportedError\n"
          "where the transform's error is not small against the set's noise, and for 'split'\n"
          "with modulus raising or where whole digits give exact products (one prime).")
      .def(
          "with_step",
          [](const Params& p, i64 step) { return p.with_step(as_unsigned<u32>(step, "step")); },
          "step"_a,
          "The same set, keys and ciphertexts with this many secret bits a step of the rotation:\n"
          "a divisor of the keys' group. Raises ParameterError for no divisor of the group and\n"
          "where the failure probability needs allow_insecure, UnsupportedError for sets without\n"
          "groups.")
      .def(
          "with_key_group",
          [](const Params& p, i64 group) {
            return p.with_key_group(as_unsigned<u32>(group, "key_group"));
          },
          "key_group"_a,
          "The same set and secret keys, with evaluation keys for groups of this many secret "
          "bits:\n"
          "those of 3 or 6 serve steps of 3. Context.key_wire_bytes and key_bytes say how\n"
          "large they are before any is made. Raises ParameterError for a size that does not "
          "divide\n"
          "the LWE dimension, UnsupportedError where approx could not add up so many and for sets\n"
          "without groups.")
      .def_static("from_bytes", &from_bytes, "data"_a, nb::kw_only(), "allow_insecure"_a = false,
                  "max_bytes"_a = nb::none(),
                  nb::sig("def from_bytes(data: bytes | bytearray | memoryview, *, "
                          "allow_insecure: bool = False, max_bytes: int | None = None) -> "
                          "TfheParams"),
                  "Parameters from `to_bytes`, checked like any others: what they claim of\n"
                  "themselves makes them no safer. Sets below the norm need allow_insecure, but\n"
                  "for the library's published ones. A set that has another name since the file\n"
                  "was written gets it, with a UserWarning that says so.\n\n"
                  "max_bytes : refuse a header that takes more memory; default 256 MiB\n\n"
                  "Raises SerializationError.")
      .def("__repr__", [](const Params& p) {
        return cat("<tfhe.Params ", p.name(), ": p = ", p.spec().plain_modulus,
                   p.spec().padded ? " padded" : "", ", ", p.slots(), " a mask, ",
                   tfhe::to_string(p.arithmetic()), ", p_fail 2^",
                   static_cast<int>(p.p_fail_log2() - 0.5), ", ",
                   static_cast<int>(p.security_bits()), " bits>");
      });
}

}  // namespace

void bind_tfhe_params(nb::module_& m) {
  nb::class_<Params> c(m, "TfheParams",
                       "Immutable, checked TFHE parameters: docs/theory/tfhe.md, \"Choice of the\n"
                       "default sets\"; probabilities: \"Probability of failure\" there.");
  bind_numbers(c);
  bind_methods(c);
  m.def("tfhe_preset", &Params::preset, "name"_a, nb::kw_only(), "allow_insecure"_a = false,
        ReleaseGil(),
        "A named set, in any case. Sets named 'toy-*' need allow_insecure. Raises\n"
        "ParameterError naming the known sets.");
  m.def(
      "tfhe_message_bound",
      [](const Params& p, i64 plain_modulus) {
        return tfhe::message_bound(p, as_unsigned<u32>(plain_modulus, "plain_modulus"));
      },
      "params"_a, "plain_modulus"_a = 0, "Messages of this modulus (0: the set's) are below it.");
  m.def(
      "tfhe_bit_modulus",
      [](const Params& p, i64 inputs) {
        return tfhe::bit_modulus(p, as_unsigned<u32>(inputs, "fan_in"));
      },
      "params"_a, "inputs"_a, "The plain modulus of bits for gates of so many inputs.");
  m.def("tfhe_preset_names", &Params::preset_names, "Names that tfhe_preset knows.");
}

}  // namespace crenel::python
