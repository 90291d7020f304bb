#include "backends/cpu/poly/vec_simd128.h"
// the implementation follows the vector type
#include "backends/cpu/poly/isa_tables.h"
#include "backends/cpu/poly/ntt_impl.h"

namespace crenel::backend::cpu::tables {
const NttTable ntt_simd128 = kNtt;
}  // namespace crenel::backend::cpu::tables
