// From an Isa to its table.
#pragma once

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/isa_table.h"

namespace crenel::backend::cpu {

/// The functions of an available path.
const IsaTable& isa_table(Isa isa);

}  // namespace crenel::backend::cpu
