#include "backends/cpu/poly/vec_avx2.h"
// the implementation follows the vector type
#include "backends/cpu/poly/isa_tables.h"
#include "backends/cpu/poly/sums_impl.h"

namespace crenel::backend::cpu::tables {
const SumsTable sums_avx2 = kSums;
}  // namespace crenel::backend::cpu::tables
