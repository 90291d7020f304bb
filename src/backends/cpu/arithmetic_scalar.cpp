#include "backends/cpu/vec_scalar.h"
// the implementation follows the vector type
#include "backends/cpu/arithmetic_impl.h"
#include "backends/cpu/isa_tables.h"

namespace crenel::backend::cpu::tables {
const ArithmeticTable arithmetic_scalar = kArithmetic;
}  // namespace crenel::backend::cpu::tables
