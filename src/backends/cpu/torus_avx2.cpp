#include "backends/cpu/torus_vec_avx2.h"
// the implementation follows the vector type
#include "backends/cpu/torus_impl.h"
#include "backends/cpu/torus_tables.h"

namespace crenel::backend::cpu::tables {
const TorusTable torus_avx2 = kTorus;
}  // namespace crenel::backend::cpu::tables
