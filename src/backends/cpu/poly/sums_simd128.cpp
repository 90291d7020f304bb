#include "backends/cpu/poly/vec_simd128.h"
// the implementation follows the vector type
#include "backends/cpu/poly/isa_tables.h"
#include "backends/cpu/poly/sums_impl.h"

namespace crenel::backend::cpu::tables {
const SumsTable sums_simd128 = kSums;
}  // namespace crenel::backend::cpu::tables
