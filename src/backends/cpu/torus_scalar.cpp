#include "backends/cpu/torus_vec_scalar.h"
// the implementation follows the vector type
#include "backends/cpu/torus_impl.h"
#include "backends/cpu/torus_tables.h"

namespace crenel::backend::cpu::tables {
const TorusTable torus_scalar = kTorus;
}  // namespace crenel::backend::cpu::tables
