#include "backends/cpu/vec_avx512.h"
// the implementation follows the vector type
#include "backends/cpu/arithmetic_impl.h"
#include "backends/cpu/isa_tables.h"

namespace crenel::backend::cpu::tables {
const ArithmeticTable arithmetic_avx512 = kArithmetic;
}  // namespace crenel::backend::cpu::tables
