// What the bindings of circuits share: key modes by name, options of a bootstrap.
#pragma once

#include "arrays.h"
#include "crenel/circuits/bootstrapping.h"
#include "names.h"

namespace crenel::python {

inline constexpr Names<circuits::KeyMode, 2> kKeyModes{
    {{"hoisted", circuits::KeyMode::hoisted}, {"minimal", circuits::KeyMode::minimal}}};

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
