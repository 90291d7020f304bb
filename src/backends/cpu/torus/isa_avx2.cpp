#include "backends/cpu/torus/vec_avx2.h"
// the implementation follows the vector type
#include "backends/cpu/torus/impl.h"
#include "backends/cpu/torus/tables.h"

namespace crenel::backend::cpu::tables {
const TorusTable torus_avx2 = kTorus;
}  // namespace crenel::backend::cpu::tables
