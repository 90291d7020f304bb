#include "backends/cpu/poly/vec_simd128.h"
// the implementation follows the vector type
#include "backends/cpu/poly/basis_impl.h"
#include "backends/cpu/poly/isa_tables.h"

namespace crenel::backend::cpu::tables {
const BasisTable basis_simd128 = kBasis;
}  // namespace crenel::backend::cpu::tables
