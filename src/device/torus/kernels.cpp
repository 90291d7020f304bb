#include "device/torus/kernels.h"

#include "crenel/core/error.h"

namespace crenel::device {

SwitchShape TorusKernels::switch_shape() const {
  return {.in_dim = plan_.extracted_dim(),
          .out_dim = plan_.lwe_dim,
          .slots = plan_.slots,
          .log_modulus = plan_.log_switch_modulus,
          .log_out_modulus = plan_.log_lwe_modulus,
          .base_log = plan_.switch_base_log,
          .digits = plan_.switch_digits};
}

void TorusKernels::use_shape(std::size_t index, u32) {
  throw UnsupportedError(cat("shape ", index, ": these kernels run in one way only"),
                         {{"shape", cat(index)}});
}

}  // namespace crenel::device
