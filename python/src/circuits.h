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
/// StateError for a transform made with other parameters or on another device.
void expect_transform_of(const ckks::Context& made, const ckks::Context& used);

/// The keyword arguments of BootstrapOptions, as a stub spells them.
#define CRENEL_BOOTSTRAP_KEYWORDS                                                                \
  "slots: int | None = None, pack: int = 1, message_ratio: int | None = None, "                  \
  "values: typing.Literal['unknown', 'centred', 'non_negative', 'constant'] = 'unknown', "       \
  "message: typing.Literal['complex', 'real', 'pair'] = 'complex', "                             \
  "order: typing.Literal['coeff_to_slot_first', 'slot_to_coeff_first'] = 'coeff_to_slot_first'," \
  " arcsine_degree: int = 0, target_level: int | None = None, iterations: int = 1, "             \
  "keys: typing.Literal['hoisted', 'minimal'] | None = None, "                                   \
  "coeff_to_slot_stages: collections.abc.Sequence[int] = (), "                                   \
  "slot_to_coeff_stages: collections.abc.Sequence[int] = (), graph: bool = True"

void bind_bootstrap_options(nb::module_& m);

}  // namespace crenel::python
