// Enumerations by name.
#pragma once

#include <array>
#include <string>
#include <utility>

#include "bindings.h"

namespace crenel::python {

template <class E, std::size_t N>
using Names = std::array<std::pair<const char*, E>, N>;

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

inline constexpr Names<ckks::PolynomialBasis, 2> kBases{
    {{"power", ckks::PolynomialBasis::power}, {"chebyshev", ckks::PolynomialBasis::chebyshev}}};

}  // namespace crenel::python
