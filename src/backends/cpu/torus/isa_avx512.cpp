#include "backends/cpu/torus/vec_avx512.h"
// the implementation follows the vector type
#include "backends/cpu/torus/impl.h"
#include "backends/cpu/torus/tables.h"

namespace crenel::backend::cpu::tables {
const TorusTable torus_avx512 = kTorus;
}  // namespace crenel::backend::cpu::tables
