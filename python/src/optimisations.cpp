// The switches of a device: an immutable set of booleans.
#include <deque>

#include "bindings.h"

namespace crenel::python {
namespace {

using device::kOptimisations;
using device::Optimisation;
using device::Optimisations;

Optimisation at(u32 index) { return static_cast<Optimisation>(index); }

Optimisations set(Optimisations base, const nb::kwargs& switches) {
  for (const auto& [name, value] : switches) {
    const Optimisation o = device::optimisation_of(nb::cast<std::string>(name));
    if (!nb::isinstance<nb::bool_>(value)) refuse_type("a bool", value);
    base = nb::cast<bool>(value) ? base.with(o) : base.without(o);
  }
  return base;
}

std::vector<const char*> off(const Optimisations& set) {
  std::vector<const char*> names;
  for (u32 i = 0; i < kOptimisations; ++i)
    if (!set.has(at(i))) names.push_back(device::name_of(at(i)));
  return names;
}

std::string text(const Optimisations& set) {
  std::string names;
  for (const char* name : off(set)) names += cat(names.empty() ? "" : ", ", name, "=False");
  return cat("crenel.Optimisations(", names, ")");
}

/// Signatures and their texts, which the module keeps for as long as it lives.
const char* kept(std::string text) {
  static std::deque<std::string> texts;
  return texts.emplace_back(std::move(text)).c_str();
}

std::string keywords(const char* type_and_default) {
  std::string all;
  for (u32 i = 0; i < kOptimisations; ++i)
    all += cat(", ", device::name_of(at(i)), type_and_default);
  return all;
}

}  // namespace

void bind_optimisations(nb::module_& m) {
  nb::class_<Optimisations> c(
      m, "Optimisations",
      "Which optimisations a device uses: all, but those that are set to False. Each has a field\n"
      "of its name; without one that is named here results keep every bit, but for\n"
      "merged_rescale, without which they differ within their errors. Immutable. What each is "
      "worth:\n"
      "docs/guide/ablation.md.");
  c.def(
       "__init__",
       [](Optimisations* self, const nb::kwargs& switches) {
         new (self) Optimisations(set(Optimisations(), switches));
       },
       nb::sig(kept(cat("def __init__(self, *", keywords(": bool = True"), ") -> None"))),
       "ParameterError for a name that there is not.")
      .def_static("none", &Optimisations::none, "Every one off.")
      .def(
          "replace",
          [](const Optimisations& self, const nb::kwargs& switches) { return set(self, switches); },
          nb::sig(kept(cat("def replace(self, *", keywords(": bool = ..."), ") -> Optimisations"))),
          "The same with some of them turned on or off.")
      .def_static(
          "meanings",
          [] {
            nb::dict all;
            for (u32 i = 0; i < kOptimisations; ++i)
              all[device::name_of(at(i))] = device::meaning_of(at(i));
            return all;
          },
          nb::sig("def meanings() -> dict[str, str]"), "Every name, with what it does in one line.")
      .def_prop_ro(
          "off", [](const Optimisations& self) { return off(self); },
          nb::for_getter(nb::sig("def off(self, /) -> list[str]")), "Names of those that are off.")
      .def("__eq__",
           [](const Optimisations& a, nb::handle b) {
             return nb::isinstance<Optimisations>(b) && a == nb::cast<const Optimisations&>(b);
           })
      .def("__hash__", [](const Optimisations& self) { return self.bits(); })
      .def("__repr__", &text);
  for (u32 i = 0; i < kOptimisations; ++i)
    c.def_prop_ro(
        device::name_of(at(i)), [i](const Optimisations& self) { return self.has(at(i)); },
        device::meaning_of(at(i)));
}

}  // namespace crenel::python
