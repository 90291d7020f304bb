// What the bindings of circuits share: key modes by name, options of a bootstrap.
#pragma once

#include "arrays.h"
#include "crenel/circuits/bootstrapping.h"
#include "names.h"

namespace crenel::python {

inline constexpr Names<circuits::KeyMode, 2> kKeyModes{
    {{"hoisted", circuits::KeyMode::hoisted}, {"minimal", circuits::KeyMode::minimal}}};

/// A matrix, or diagonals by offset, as a stub spells it.
#define CRENEL_MATRIX         \
  "numpy.typing.ArrayLike | " \
  "collections.abc.Mapping[int, numpy.typing.ArrayLike]"

/// Of a transform: all there are, where none are given. ParameterError.
u64 checked_slots(const ckks::Params& params, std::optional<i64> given);
/// Two axes of numbers, or a mapping of diagonals by offset. ParameterError.
circuits::DiagonalMatrix matrix_of(nb::handle object, u64 slots);
/// What both makers of transforms take as arguments. ParameterError names the one out of range.
circuits::LinearTransformOptions transform_options(std::optional<i64> level, i64 baby_steps,
                                                   const std::string& keys,
                                                   std::optional<double> scale);
/// StateError for a transform made with other parameters or on another device.
void expect_transform_of(const ckks::Context& made, const ckks::Context& used);

/// A transform with its context, and the keys that it was made for.
template <class T>
struct BoundTransform {
  ckks::Context context;
  T value;
  circuits::KeyMode keys;
};

/// What every transform tells of itself, and the record of its product: `record` is the recorder's
/// method for it, `takes` and `gives` the types of its operands and results, as a stub spells them.
template <class T>
void bind_transform_facts(nb::class_<BoundTransform<T>>& c, const char* record, const char* takes,
                          const char* gives) {
  using Transform = BoundTransform<T>;
  c.def(
       "__call__",
       [record](nb::handle self, nb::handle recorder, nb::handle operands) -> nb::object {
         // Operands that record (ckks.needs): neither evaluator nor ciphertexts.
         if (nb::isinstance<ckks::Evaluator>(recorder) || !nb::hasattr(recorder, "bootstrapped"))
           throw nb::next_overload();
         return recorder.attr(record)(self, operands);
       },
       "recorder"_a, "recorded"_a,
       nb::sig(
           cat("def __call__(self, recorder: Recorder, recorded: ", takes, ") -> ", gives).c_str()),
       "The record of that.")
      .def_prop_ro(
          "rotations", [](const Transform& t) { return t.value.rotations(); },
          "Rotations that need keys, ascending: client.evaluation_keys(rotations=t.rotations).")
      .def_prop_ro(
          "level", [](const Transform& t) { return t.value.level(); },
          "Level of the vectors it takes.")
      .def_prop_ro(
          "slots", [](const Transform& t) { return t.value.slots(); },
          "Slots of the vectors it takes.")
      .def_prop_ro(
          "keys", [](const Transform& t) { return name_of(kKeyModes, t.keys); },
          "'hoisted' or 'minimal'.")
      .def_prop_ro(
          "plaintext_bytes", [](const Transform& t) { return t.value.plaintext_bytes(); },
          "Bytes of the encoded diagonals on the device.");
}

/// The keyword arguments of BootstrapOptions, as a stub spells them.
#define CRENEL_BOOTSTRAP_KEYWORDS                                                                \
  "slots: int | None = None, pack: int = 1, message_ratio: int | None = None, "                  \
  "values: typing.Literal['unknown', 'centred', 'non_negative', 'constant'] = 'unknown', "       \
  "message: typing.Literal['complex', 'real', 'pair'] = 'complex', "                             \
  "order: typing.Literal['coeff_to_slot_first', 'slot_to_coeff_first'] = 'coeff_to_slot_first'," \
  " arcsine_degree: int = 0, target_level: int | None = None, iterations: int = 1, "             \
  "keys: typing.Literal['hoisted', 'minimal'] | None = None, "                                   \
  "coeff_to_slot_stages: collections.abc.Sequence[int] = (), "                                   \
  "slot_to_coeff_stages: collections.abc.Sequence[int] = (), "                                   \
  "over_mod_raise: bool | None = None, folded_sums: bool = True, short_raise: bool = True, "     \
  "real_symmetry: bool = True, aligned_keys: bool = True, graph: bool = True"

void bind_bootstrap_options(nb::module_& m);

}  // namespace crenel::python
