#include "backends/cpu/poly/vec_avx512.h"
// the implementation follows the vector type
#include "backends/cpu/poly/isa_tables.h"
#include "backends/cpu/poly/ntt_impl.h"

namespace crenel::backend::cpu::tables {
const NttTable ntt_avx512 = kNtt;
}  // namespace crenel::backend::cpu::tables
