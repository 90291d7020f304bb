#include "backends/cpu/vec_scalar.h"
// the implementation follows the vector type
#include "backends/cpu/sample_impl.h"
#include "backends/cpu/isa_tables.h"

namespace crenel::backend::cpu::tables {
const SampleTable sample_scalar = kSample;
}  // namespace crenel::backend::cpu::tables
