#include "backends/cpu/poly/vec_simd128.h"
// the implementation follows the vector type
#include "backends/cpu/poly/fused_impl.h"
#include "backends/cpu/poly/isa_tables.h"

namespace crenel::backend::cpu::tables {
const FusedTable fused_simd128 = kFused;
}  // namespace crenel::backend::cpu::tables
