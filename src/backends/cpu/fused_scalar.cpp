#include "backends/cpu/vec_scalar.h"
// the implementation follows the vector type
#include "backends/cpu/fused_impl.h"
#include "backends/cpu/isa_tables.h"

namespace crenel::backend::cpu::tables {
const FusedTable fused_scalar = kFused;
}  // namespace crenel::backend::cpu::tables
