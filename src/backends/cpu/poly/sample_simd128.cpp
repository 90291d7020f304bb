#include "backends/cpu/poly/vec_simd128.h"
// the implementation follows the vector type
#include "backends/cpu/poly/isa_tables.h"
#include "backends/cpu/poly/sample_impl.h"

namespace crenel::backend::cpu::tables {
const SampleTable sample_simd128 = kSample;
}  // namespace crenel::backend::cpu::tables
