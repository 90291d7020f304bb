// From an Isa to its table.
#pragma once

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/poly/isa_table.h"
#include "backends/cpu/torus/table.h"

namespace crenel::backend::cpu {

/// The functions of an available path.
const IsaTable& isa_table(Isa isa);
/// The same for TFHE. Its AVX2 path needs fused multiplications, which came with another extension:
/// a processor without them takes the portable path.
const TorusTable& torus_table(Isa isa);

}  // namespace crenel::backend::cpu
