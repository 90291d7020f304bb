// Text of docs/reference/tfhe-parameters.md, computed from the sets.
#pragma once

#include <cmath>
#include <iomanip>
#include <sstream>
#include <string>

#include "crenel/tfhe/params.h"
#include "tfhe/params/noise.h"

namespace crenel::test {

inline std::string tfhe_decimals(double value, int digits) {
  std::ostringstream out;
  out << std::fixed << std::setprecision(digits) << value;
  return out.str();
}

inline std::string tfhe_parameter_row(const tfhe::Params& params) {
  const tfhe::Spec& spec = params.spec();
  const bool gadget = spec.path == tfhe::NoisePath::gadget;
  std::ostringstream row;
  row << "| `" << spec.name << "` | " << spec.lwe_dim << " | " << spec.glwe_dim << " | "
      << spec.poly_size << " | 2^" << spec.log_lwe_modulus << " | 2^" << spec.log_modulus << " | ";
  const std::string kept = spec.group != 0 ? cat(", ", spec.switch_digits, " digits") : "";
  if (gadget)
    row << "2^" << spec.base_log << ", " << params.digits() << " digits";
  else
    row << "T = 2^" << spec.log_raised_modulus;
  if (spec.group != 0) row << ", g = " << spec.group << ", steps of " << spec.step;
  if (spec.differences) row << " by differences";
  row << " | 2^" << spec.log_switch_modulus << ", 2^" << spec.switch_base_log << kept << " | "
      << tfhe::to_string(spec.arithmetic) << " | " << spec.plain_modulus
      << (spec.padded ? " padded" : "") << " | " << tfhe_decimals(spec.max_norm2, 0) << " | 2^"
      << tfhe_decimals(params.p_fail_log2(), 1) << " | " << tfhe_decimals(params.security_bits(), 1)
      << " |\n";
  return row.str();
}

inline std::string tfhe_slots_table() {
  constexpr u32 kSlots[] = {1, 2, 3, 4, 5, 8, 16};
  std::ostringstream out;
  out << "| Set |";
  for (const u32 r : kSlots) out << " r = " << r << " |";
  out << "\n|---|";
  for (std::size_t i = 0; i < std::size(kSlots); ++i) out << "---|";
  out << '\n';
  for (const std::string& name : tfhe::Params::preset_names()) {
    const tfhe::Params params = tfhe::Params::preset(name, true);
    if (params.spec().path != tfhe::NoisePath::raising || params.spec().plain_modulus != 4 ||
        name.starts_with("toy-"))
      continue;
    out << "| `" << name << "` |";
    for (const u32 r : kSlots) {
      const bool groups = params.spec().group != 0;  // whose arithmetic is approx
      const auto slots = (groups ? params : params.with_arithmetic(tfhe::Arithmetic::exact))
                             .with_slots(tfhe::SlotCount(r));
      out << " 2^"
          << tfhe_decimals(
                 failure_log2(slots, std::sqrt(tfhe::kErrorVariance), params.spec().max_norm2, 4),
                 1)
          << " |";
    }
    out << '\n';
  }
  return out.str();
}

inline std::string tfhe_inputs_table() {
  const double sigma = std::sqrt(tfhe::kErrorVariance);
  std::ostringstream out;
  out << "| Set | two inputs | MAJORITY | three inputs, p = 6 | four inputs, p = 8 |\n"
         "|---|---|---|---|---|\n";
  for (const std::string& name : tfhe::Params::preset_names()) {
    const tfhe::Params params = tfhe::Params::preset(name, true);
    if (params.spec().plain_modulus != 4 || name.starts_with("toy-")) continue;
    out << "| `" << name << "` | 2^" << tfhe_decimals(failure_log2(params, sigma, 2, 4), 1)
        << " | 2^" << tfhe_decimals(failure_log2(params, sigma, 3, 4), 1) << " | 2^"
        << tfhe_decimals(failure_log2(params, sigma, 3, 6), 1) << " | 2^"
        << tfhe_decimals(failure_log2(params, sigma, 4, 8), 1) << " |\n";
  }
  return out.str();
}

inline std::string tfhe_parameter_page() {
  std::ostringstream out;
  out << R"(# TFHE parameter sets

<!-- computed by tests/unit/tfhe/params/params_test.cpp; CRENEL_UPDATE_DOCS=1 renders it anew -->

Named sets are the files `params/tfhe-*.toml`, each with its provenance; names may be written in any case.
`p_fail` bounds the probability that one bootstrap gives a wrong message, for a sum of inputs, fresh or
bootstrapped, whose squared factors add up to `norm2`, messages q / p apart, and for gates of two inputs
([0011](../design/0011-tfhe-parameters.md)); without padding and for p > 4 also for tables, whose second
bootstrap reads the noise of the first. Security is the lattice estimator's, or interpolated from it, in bits.
Sets below 2^-128 or 128 bits warn. Sets with groups of g secret bits have binary LWE secrets, and their
ciphertexts rest under the extracted key, kN + r words modulo q for r messages.

| Set | n | k | N | q | Q | B_g or T | Q_KS, B_KS | arithmetic | p | norm2 | p_fail | security |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
)";
  for (const char* prefix : {"bool", "lut", "STD", "G", "M", "toy-"})
    for (const std::string& name : tfhe::Params::preset_names())
      if (name.starts_with(prefix)) out << tfhe_parameter_row(tfhe::Params::preset(name, true));
  out << R"(
What each is for:

)";
  for (const char* prefix : {"bool", "lut", "STD", "G", "M", "toy-"})
    for (const std::string& name : tfhe::Params::preset_names())
      if (name.starts_with(prefix))
        out << "- `" << name << "`: " << tfhe::Params::preset_description(name) << '\n';
  out << R"(
## Packing

`p_fail` with r messages under a shared mask, exact arithmetic where the set has it:

)" << tfhe_slots_table()
      << R"(
## Gates of more inputs

`p_fail` of a gate of bootstrapped inputs (MUX is three of two inputs):

)" << tfhe_inputs_table();
  return out.str();
}

}  // namespace crenel::test
