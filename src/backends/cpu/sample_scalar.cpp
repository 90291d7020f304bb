#include "backends/cpu/vec_scalar.h"
// the implementation follows the vector type
#include "backends/cpu/isa_tables.h"
#include "backends/cpu/sample_impl.h"

namespace crenel::backend::cpu::tables {
const SampleTable sample_scalar = kSample;
}  // namespace crenel::backend::cpu::tables
