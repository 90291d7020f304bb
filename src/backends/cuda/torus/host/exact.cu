#include "backends/cuda/torus/host/instance.cuh"

namespace crenel::backend::cuda::torus {

std::span<const RotateInstance> exact_instances() {
  static const RotateInstance all[] = {
      ntt_entry<2, false, i64, Exact11>("exact-11-gadget-2"),
      ntt_entry<2, false, i64, Exact11Pair>("exact-11-gadget-2-pair"),
      ntt_entry<2, true, i32, Exact9>("exact-9-raising-2"),
  };
  return all;
}

}  // namespace crenel::backend::cuda::torus
