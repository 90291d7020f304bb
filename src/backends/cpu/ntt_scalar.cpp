#include "backends/cpu/vec_scalar.h"
// the implementation follows the vector type
#include "backends/cpu/isa_tables.h"
#include "backends/cpu/ntt_impl.h"

namespace crenel::backend::cpu::tables {
const NttTable ntt_scalar = kNtt;
}  // namespace crenel::backend::cpu::tables
