#include "backends/cpu/torus/vec_scalar.h"
// the implementation follows the vector type
#include "backends/cpu/torus/impl.h"
#include "backends/cpu/torus/tables.h"

namespace crenel::backend::cpu::tables {
const TorusTable torus_scalar = kTorus;
}  // namespace crenel::backend::cpu::tables
