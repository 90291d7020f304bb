#include "backends/cpu/poly/vec_avx2.h"
// the implementation follows the vector type
#include "backends/cpu/poly/arithmetic_impl.h"
#include "backends/cpu/poly/isa_tables.h"

namespace crenel::backend::cpu::tables {
const ArithmeticTable arithmetic_avx2 = kArithmetic;
}  // namespace crenel::backend::cpu::tables
