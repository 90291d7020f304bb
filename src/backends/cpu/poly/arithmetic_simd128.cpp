#include "backends/cpu/poly/vec_simd128.h"
// the implementation follows the vector type
#include "backends/cpu/poly/arithmetic_impl.h"
#include "backends/cpu/poly/isa_tables.h"

namespace crenel::backend::cpu::tables {
const ArithmeticTable arithmetic_simd128 = kArithmetic;
}  // namespace crenel::backend::cpu::tables
