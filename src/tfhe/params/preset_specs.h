// Named parameter sets; the table is generated from params/tfhe-*.toml by tools/gen_tfhe_params.py.
#pragma once

#include <vector>

#include "crenel/tfhe/params.h"

namespace crenel::tfhe {

/// All named sets, sorted by name.
const std::vector<Spec>& preset_specs();

}  // namespace crenel::tfhe
