// What the bindings of circuits share: enumerations by name, options of a bootstrap.
#pragma once

#include <array>
#include <string>
#include <utility>

#include "arrays.h"
#include "crenel/circuits/bootstrapping.h"

namespace crenel::python {

template <class E, std::size_t N>
using Names = std::array<std::pair<const char*, E>, N>;

inline constexpr Names<circuits::KeyMode, 2> kKeyModes{
    {{"hoisted", circuits::KeyMode::hoisted}, {"minimal", circuits::KeyMode::minimal}}};

/// The value of this name; ParameterError lists the names there are.
template <class E, std::size_t N>
E from_name(const Names<E, N>& names, const std::string& name, const char* argument) {
  std::string known;
  for (const auto& [text, value] : names) {
    if (name == text) return value;
    known += cat(known.empty() ? "'" : ", '", text, "'");
  }
  throw ParameterError(cat(argument, " must be one of ", known, ", got '", name, "'"),
                       {{argument, name}});
}

template <class E, std::size_t N>
const char* name_of(const Names<E, N>& names, E value) {
  for (const auto& [text, other] : names)
    if (other == value) return text;
  return "unknown";
}

/// Options whose key mode may be left open: it is then the one that the keys serve.
struct BootstrapChoice {
  circuits::BootstrapOptions options;
  bool any_keys = true;
};

/// The keyword arguments of BootstrapOptions, as a stub spells them.
#define CRENEL_BOOTSTRAP_KEYWORDS                                                                \
  "slots: int | None = None, message_ratio: int = 5, "                                           \
  "message: typing.Literal['complex', 'real', 'pair'] = 'complex', "                             \
  "order: typing.Literal['coeff_to_slot_first', 'slot_to_coeff_first'] = 'coeff_to_slot_first'," \
  " arcsine_degree: int = 0, target_level: int | None = None, iterations: int = 1, "             \
  "keys: typing.Literal['hoisted', 'minimal'] | None = None, "                                   \
  "coeff_to_slot_stages: collections.abc.Sequence[int] = (), "                                   \
  "slot_to_coeff_stages: collections.abc.Sequence[int] = (), graph: bool = True"

void bind_bootstrap_options(nb::module_& m);

}  // namespace crenel::python
