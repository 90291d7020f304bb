#include "backends/cpu/vec_avx2.h"
// the implementation follows the vector type
#include "backends/cpu/isa_tables.h"
#include "backends/cpu/sample_impl.h"

namespace crenel::backend::cpu::tables {
const SampleTable sample_avx2 = kSample;
}  // namespace crenel::backend::cpu::tables
