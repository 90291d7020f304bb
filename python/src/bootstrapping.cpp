// The bootstrapper, and how a context makes one.
#include "ciphertext_like.h"
#include "circuits.h"

namespace crenel::python {
namespace {

using circuits::BootstrapOptions;
using Bootstrapper = Bound<circuits::Bootstrapper>;

/// An options object, or the keyword arguments that make one.
BootstrapOptions options_of(nb::handle given, const nb::kwargs& keywords) {
  if (given.is_none()) return nb::cast<BootstrapOptions>(nb::type<BootstrapOptions>()(**keywords));
  if (!nb::isinstance<BootstrapOptions>(given))
    throw nb::type_error("options must be a ckks.BootstrapOptions object or keyword arguments");
  if (!keywords.empty())
    throw nb::type_error("options as an object and as keyword arguments: give one of them");
  return nb::cast<BootstrapOptions>(given);
}

Bootstrapper make_bootstrapper(const ckks::Context& context, const EvaluationKeys* keys,
                               nb::handle options, nb::handle progress,
                               const nb::kwargs& keywords) {
  const BootstrapOptions chosen = options_of(options, keywords);
  const Progress told(progress);
  Bootstrapper made = released([&] {
    return Bootstrapper{context, keys ? circuits::Bootstrapper(context, keys->value, chosen)
                                      : circuits::Bootstrapper(context, chosen)};
  });
  const std::string& notice = made.value.notice();
  if (!notice.empty() && PyErr_WarnEx(error_type("KeyModeWarning").ptr(), notice.c_str(), 1) != 0)
    throw nb::python_error();
  return made;
}

Ciphertext call(const Bootstrapper& b, nb::handle object, const ckks::Evaluator* ev,
                nb::handle progress) {
  const ckks::Ciphertext& a = as_ciphertext(object);
  const Progress told(progress);
  return released([&] { return Ciphertext{b.context, ev ? b.value(*ev, a) : b.value(a)}; });
}

Ciphertext eager(const Bootstrapper& b, nb::handle object, const ckks::Evaluator* ev) {
  const ckks::Ciphertext& a = as_ciphertext(object);
  return released(
      [&] { return Ciphertext{b.context, ev ? b.value.eager(*ev, a) : b.value.eager(a)}; });
}

/// The members of a list or tuple, anything else is for the next overload; kept, since another
/// thread may change a list meanwhile.
std::vector<nb::object> members_of(nb::handle list) {
  if (!nb::isinstance<nb::list>(list) && !nb::isinstance<nb::tuple>(list))
    throw nb::next_overload();
  std::vector<nb::object> members;
  for (nb::handle object : list) members.push_back(nb::borrow(object));
  return members;
}

template <class F>
std::vector<Ciphertext> each_of(const Bootstrapper& b, nb::handle list, nb::handle progress, F f) {
  const std::vector<nb::object> members = members_of(list);
  std::vector<const ckks::Ciphertext*> in;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const CiphertextLike a = find_ciphertext(members[i]);
    if (a.shared == nullptr) refuse_type(cat("a ciphertext at ciphertexts[", i, "]"), members[i]);
    in.push_back(&a.get());
  }
  const Progress told(progress);
  return released([&] {
    std::vector<Ciphertext> out;
    for (ckks::Ciphertext& a : f(std::span<const ckks::Ciphertext* const>(in)))
      out.push_back(Ciphertext{b.context, std::move(a)});
    return out;
  });
}

std::vector<Ciphertext> call_all(const Bootstrapper& b, nb::handle list, const ckks::Evaluator* ev,
                                 nb::handle progress) {
  return each_of(b, list, progress, [&](auto in) { return ev ? b.value(*ev, in) : b.value(in); });
}

std::vector<Ciphertext> eager_all(const Bootstrapper& b, nb::handle list,
                                  const ckks::Evaluator* ev) {
  return each_of(b, list, nb::none(),
                 [&](auto in) { return ev ? b.value.eager(*ev, in) : b.value.eager(in); });
}

std::vector<ckks::BoundOperand> bounds_of_all(const Bootstrapper& b,
                                              const std::vector<ckks::BoundOperand>& list) {
  std::vector<ckks::ErrorBound> in;
  for (const ckks::BoundOperand& a : list) in.push_back(a.bound());
  if (in.empty()) throw nb::next_overload();
  std::vector<ckks::BoundOperand> out;
  for (ckks::ErrorBound& a : b.value(list[0].model(), in))
    out.emplace_back(list[0].model(), std::move(a));
  return out;
}

/// The record of one operand, by the recorder that it belongs to.
nb::object recorded_one(nb::handle self, nb::handle recorded) {
  if (nb::isinstance<Ciphertext>(recorded) || nb::isinstance<ckks::Operand>(recorded) ||
      !nb::hasattr(recorded, "evaluator"))
    throw nb::next_overload();
  const nb::object recorder = recorded.attr("evaluator");
  if (!nb::hasattr(recorder, "bootstrapped")) throw nb::next_overload();
  return recorder.attr("bootstrapped")(self, recorded);
}

nb::list recorded_all(nb::handle self, nb::handle list) {
  nb::list out;
  for (const nb::object& recorded : members_of(list)) out.append(recorded_one(self, recorded));
  if (nb::len(out) == 0) throw nb::next_overload();
  return out;
}

std::pair<Ciphertext, Ciphertext> pair(const Bootstrapper& b, nb::handle first, nb::handle second,
                                       const ckks::Evaluator* ev) {
  const ckks::Ciphertext &u = as_ciphertext(first), &v = as_ciphertext(second);
  return released([&] {
    auto both = ev ? b.value.pair(*ev, u, v) : b.value.pair(u, v);
    return std::pair(Ciphertext{b.context, std::move(both.first)},
                     Ciphertext{b.context, std::move(both.second)});
  });
}

void bind_calls(nb::class_<Bootstrapper>& c) {
  // The last one takes any object.
  c.def(
       "__call__",
       [](const Bootstrapper& b, const ckks::BoundOperand& a,
          const std::optional<ckks::ErrorModel>&) {
         return ckks::BoundOperand(a.model(), b.value(a.model(), a.bound()));
       },
       "ciphertext"_a, "evaluator"_a = nb::none(),
       "The error bound of a bootstrap; `failure` grows by the bootstrap's own probability.\n\n"
       "Raises UnsupportedError with two iterations and for pairs, and StateError for messages\n"
       "too large for the message ratio.")
      .def("__call__", &recorded_one, "recorded"_a,
           nb::sig("def __call__(self, recorded: Recorded) -> "
                   "Recorded"),
           "The record of that, for ckks.needs.")
      .def("__call__", &recorded_all, "recorded"_a,
           nb::sig("def __call__(self, recorded: collections.abc.Sequence[Recorded]) -> "
                   "list[Recorded]"),
           "The record of a list.")
      .def("__call__", &bounds_of_all, "bounds"_a,
           nb::sig("def __call__(self, bounds: collections.abc.Sequence[ErrorBound]) -> "
                   "list[ErrorBound]"),
           "The error bounds of a list.")
      .def(
          "__call__", &call_all, "ciphertexts"_a, "evaluator"_a = nb::none(), nb::kw_only(),
          "progress"_a = nb::none(),
          nb::sig("def __call__(self, ciphertexts: collections.abc.Sequence[Ciphertext | Operand], "
                  "evaluator: Evaluator | None = None, *, " CRENEL_PROGRESS_SIG
                  ") -> list[Ciphertext]"),
          "Refresh a list or tuple of ciphertexts: options.pack of them share a bootstrap (with\n"
          "message='pair' twice as many real vectors), and all bootstraps are one batch. As many "
          "results,\n"
          "in their order.\n\n"
          "Level, scale and batch are those of one ciphertext, and equal (StateError names both);\n"
          "slots are those of the options or fewer, as of a vector that repeats, and are kept.\n"
          "ParameterError for an empty list.")
      .def("__call__", &call, "ciphertext"_a.none(), "evaluator"_a = nb::none(), nb::kw_only(),
           "progress"_a = nb::none(),
           nb::sig("def __call__(self, ciphertext: Ciphertext | Operand, "
                   "evaluator: Evaluator | None = None, *, " CRENEL_PROGRESS_SIG ") -> Ciphertext"),
           "Refresh a ciphertext, of any batch, at level levels.input with the canonical scale of "
           "that\n"
           "level and the slots of the options; the result is at levels.output. Slots should be\n"
           "bounded by 1. On a GPU the first call for a batch size records a graph.\n\n"
           "evaluator : whose keys are used; default those that the bootstrapper was made "
           "with\n" CRENEL_PROGRESS_DOC
           "\n"
           "With two iterations the input may be at any level. Raises StateError naming level, "
           "scale "
           "or\n"
           "slots and what was expected, KeyMissingError naming every missing key.")
      .def("eager", &eager_all, "ciphertexts"_a, "evaluator"_a = nb::none(),
           nb::sig("def eager(self, ciphertexts: collections.abc.Sequence[Ciphertext | Operand], "
                   "evaluator: Evaluator | None = None) -> list[Ciphertext]"),
           "The same bits without a graph, of a list.")
      .def("eager", &eager, "ciphertext"_a.none(), "evaluator"_a = nb::none(),
           nb::sig("def eager(self, ciphertext: Ciphertext | Operand, "
                   "evaluator: Evaluator | None = None) -> Ciphertext"),
           "The same bits without a graph.")
      .def(
          "pair", &pair, "u"_a, "v"_a, "evaluator"_a = nb::none(),
          nb::sig("def pair(self, u: Ciphertext | Operand, v: Ciphertext | Operand, "
                  "evaluator: Evaluator | None = None) -> tuple[Ciphertext, Ciphertext]"),
          "Two vectors of real numbers in one bootstrap. Raises StateError unless the options say\n"
          "message='pair'.");
}

void bind_facts(nb::class_<Bootstrapper>& c) {
  c.def_prop_ro(
       "levels", [](const Bootstrapper& b) { return b.value.levels(); },
       "Levels, from the input to the output.")
      .def_prop_ro(
          "options", [](const Bootstrapper& b) { return b.value.options(); },
          "The options with every default filled in.")
      .def_prop_ro(
          "correction_bits", [](const Bootstrapper& b) { return b.value.correction_bits(); },
          "log2 of the factor by which a second iteration enlarges the scale; 0 with one "
          "iteration.")
      .def(
          "report", [](const Bootstrapper& b) { return b.value.describe(); },
          "What a bootstrap needs and delivers, as numbers.", ReleaseGil())
      .def(
          "describe", [](const Bootstrapper& b) { return b.value.describe().text(); },
          "The same in words.", ReleaseGil())
      .def("__repr__", [](const Bootstrapper& b) {
        const BootstrapOptions& o = b.value.options();
        return cat("<ckks.Bootstrapper of ", o.pack == 1 ? "" : cat(o.pack, " times "), o.slots,
                   " slots, level ", b.value.levels().input, " -> ", b.value.levels().output, ", ",
                   name_of(kKeyModes, *o.keys), " keys>");
      });
}

}  // namespace

void bind_bootstrapping(nb::module_& m) {
  bind_bootstrap_options(m);
  nb::class_<Bootstrapper> c(
      m, "Bootstrapper",
      "Refreshes ciphertexts of the last level: the same slots at a level with products to "
      "spend.\n\n"
      "Bossuat et al., Eurocrypt 2021, with sparse-secret encapsulation (ACNS 2022). Made by\n"
      "Context.bootstrapper. What it holds is there once for a context and options, however many\n"
      "clients' keys it is used with.");
  bind_calls(c);
  bind_facts(c);
  nb::borrow<nb::class_<ckks::Context>>(nb::type<ckks::Context>())
      .def(
          "bootstrapper", &make_bootstrapper, "server"_a = nb::none(), "options"_a = nb::none(),
          nb::kw_only(), "progress"_a = nb::none(), "keywords"_a,
          nb::sig("def bootstrapper(self, server: EvaluationKeys | None = None, options: "
                  "BootstrapOptions | None = None, *, " CRENEL_PROGRESS_SIG
                  ", " CRENEL_BOOTSTRAP_KEYWORDS ") -> Bootstrapper"),
          "A bootstrapper with the keys of client.evaluation_keys(bootstrap=...), or, without, "
          "for\n"
          "calls that name an evaluator; its plaintexts are encoded now, or shared with another "
          "of\n"
          "this context and the same options. Options as an object or as the keyword arguments of\n"
          "BootstrapOptions.\n\n"
          "What they leave open is as the keys serve it best: the key mode, and the slots where\n"
          "neither mode nor stages are given. `options` and describe() say what it is. Keys that "
          "were\n"
          "made for other slots and serve those asked for slowly get a "
          "KeyModeWarning.\n\n" CRENEL_PROGRESS_DOC
          "\n"
          "Raises ParameterError for options that the parameters cannot serve, KeyMissingError\n"
          "naming every missing key and the call that makes them, StateError for keys of other\n"
          "parameters or another device.");
}

}  // namespace crenel::python
