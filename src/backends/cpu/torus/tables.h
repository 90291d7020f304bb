// The tables that isa_<isa>.cpp define.
#pragma once

#include "backends/cpu/torus/table.h"

namespace crenel::backend::cpu::tables {

extern const TorusTable torus_scalar;
extern const TorusTable torus_avx2;
extern const TorusTable torus_avx512;

}  // namespace crenel::backend::cpu::tables
