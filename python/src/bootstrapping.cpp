// Bootstrapping: options by name, the bootstrapper, and what it says about itself.
#include <memory>
#include <mutex>

#include "circuits.h"

namespace crenel::python {
namespace {

using circuits::KeyMode;

struct Bootstrapper {
  ckks::Context context;
  circuits::Bootstrapper value;
  bool chose_minimal = false;  ///< nobody asked for it, but the keys serve nothing else
  std::unique_ptr<std::mutex> mutex = std::make_unique<std::mutex>();  ///< one call at a time
};

/// An options object, or the keyword arguments that make one.
BootstrapChoice options_of(nb::handle given, const nb::kwargs& keywords) {
  if (given.is_none()) return nb::cast<BootstrapChoice>(nb::type<BootstrapChoice>()(**keywords));
  if (!nb::isinstance<BootstrapChoice>(given))
    throw nb::type_error("options must be a ckks.BootstrapOptions object or keyword arguments");
  if (keywords.size() != 0)
    throw nb::type_error("options as an object and as keyword arguments: give one of them");
  return nb::cast<BootstrapChoice>(given);
}

Bootstrapper make(const ckks::Context& context, const EvaluationKeys& keys,
                  BootstrapChoice choice) {
  const auto with = [&](KeyMode mode) {
    choice.options.keys = mode;
    return Bootstrapper{context, circuits::Bootstrapper(context, keys.value, choice.options)};
  };
  if (!choice.any_keys) return with(choice.options.keys);
  try {
    return with(KeyMode::hoisted);
  } catch (const KeyMissingError& hoisted) {  // keys are looked for before any work is done
    try {
      Bootstrapper minimal = with(KeyMode::minimal);
      minimal.chose_minimal = true;
      return minimal;
    } catch (const KeyMissingError&) {
      throw hoisted;
    }
  }
}

Ciphertext wrap(const Bootstrapper& b, ckks::Ciphertext&& value) {
  return Ciphertext{b.context, std::move(value)};
}

/// f on the bootstrapper without the GIL, one thread at a time.
template <class F>
auto exclusively(Bootstrapper& b, F&& f) {
  nb::gil_scoped_release release;
  const std::lock_guard lock(*b.mutex);
  return f();
}

Ciphertext call(Bootstrapper& b, nb::handle object) {
  const Ciphertext& a = as_ciphertext(object);
  return exclusively(b, [&] { return wrap(b, b.value(a.value)); });
}

Ciphertext eager(Bootstrapper& b, nb::handle object) {
  const Ciphertext& a = as_ciphertext(object);
  return exclusively(b, [&] { return wrap(b, b.value.eager(a.value)); });
}

std::pair<Ciphertext, Ciphertext> pair(Bootstrapper& b, nb::handle first, nb::handle second) {
  const Ciphertext &u = as_ciphertext(first), &v = as_ciphertext(second);
  return exclusively(b, [&] {
    auto both = b.value.pair(u.value, v.value);
    return std::pair(wrap(b, std::move(both.first)), wrap(b, std::move(both.second)));
  });
}

std::string describe(const Bootstrapper& b) {
  return cat(b.value.describe().text(), "\nkey mode        ",
             name_of(kKeyModes, b.value.options().keys),
             b.chose_minimal ? ": the keys given serve no other" : "");
}

}  // namespace

void bind_bootstrapping(nb::module_& m) {
  bind_bootstrap_options(m);
  nb::class_<Bootstrapper>(
      m, "Bootstrapper",
      "Refreshes ciphertexts of the last level: the same slots at a level with products to "
      "spend.\n\n"
      "Bossuat et al., Eurocrypt 2021, with sparse-secret encapsulation (ACNS 2022). Made by\n"
      "Context.bootstrapper; calls of several threads are served one after the other.")
      .def("__call__", &call, "ciphertext"_a,
           nb::sig("def __call__(self, ciphertext: Ciphertext | crenel.operand.Operand) -> "
                   "Ciphertext"),
           "Refresh a ciphertext, of any batch, at level levels.input with the canonical scale of "
           "that\n"
           "level and the slots of the options; the result is at levels.output. Slots should be\n"
           "bounded by 1. On a GPU the first call for a batch size records a graph.\n\n"
           "With two iterations the input may be at any level. Raises StateError naming level, "
           "scale or\n"
           "slots and what was expected.")
      .def(
          "eager", &eager, "ciphertext"_a,
          nb::sig("def eager(self, ciphertext: Ciphertext | crenel.operand.Operand) -> Ciphertext"),
          "The same bits without a graph.")
      .def(
          "pair", &pair, "u"_a, "v"_a,
          nb::sig("def pair(self, u: Ciphertext | crenel.operand.Operand, "
                  "v: Ciphertext | crenel.operand.Operand) -> tuple[Ciphertext, Ciphertext]"),
          "Two vectors of real numbers in one bootstrap. Raises StateError unless the options say\n"
          "message='pair'.")
      .def_prop_ro(
          "levels", [](const Bootstrapper& b) { return b.value.levels(); },
          "Levels, from the input to the output.")
      .def_prop_ro(
          "options",
          [](const Bootstrapper& b) { return BootstrapChoice{b.value.options(), false}; },
          "The options with every default filled in.")
      .def_prop_ro(
          "correction_bits", [](const Bootstrapper& b) { return b.value.correction_bits(); },
          "log2 of the factor by which a second iteration enlarges the scale; 0 with one "
          "iteration.")
      .def(
          "report", [](const Bootstrapper& b) { return b.value.describe(); },
          "What a bootstrap needs and delivers, as numbers.", ReleaseGil())
      .def("describe", &describe, "The same in words.", ReleaseGil())
      .def("__repr__", [](const Bootstrapper& b) {
        const circuits::BootstrapOptions& o = b.value.options();
        return cat("<ckks.Bootstrapper of ", o.slots, " slots, level ", b.value.levels().input,
                   " -> ", b.value.levels().output, ", ", name_of(kKeyModes, o.keys), " keys>");
      });
  using Context = nb::class_<ckks::Context>;
  nb::borrow<Context>(nb::type<ckks::Context>())
      .def(
          "bootstrapper",
          [](const ckks::Context& context, const EvaluationKeys& keys, nb::handle options,
             const nb::kwargs& keywords) {
            BootstrapChoice chosen = options_of(options, keywords);
            return released([&] { return make(context, keys, std::move(chosen)); });
          },
          "server"_a, "options"_a = nb::none(), "keywords"_a,
          nb::sig("def bootstrapper(self, server: EvaluationKeys, options: BootstrapOptions | None "
                  "= None, *, " CRENEL_BOOTSTRAP_KEYWORDS ") -> Bootstrapper"),
          "A bootstrapper with the keys of client.evaluation_keys(bootstrap=...); its plaintexts\n"
          "are encoded now. Options as an object or as the keyword arguments of "
          "BootstrapOptions.\n\n"
          "Raises ParameterError for options that the parameters cannot serve, KeyMissingError\n"
          "naming every missing key, StateError for keys of other parameters or another device.");
}

}  // namespace crenel::python
