#include "backends/cpu/poly/vec_scalar.h"
// the implementation follows the vector type
#include "backends/cpu/poly/isa_tables.h"
#include "backends/cpu/poly/sums_impl.h"

namespace crenel::backend::cpu::tables {
const SumsTable sums_scalar = kSums;
}  // namespace crenel::backend::cpu::tables
