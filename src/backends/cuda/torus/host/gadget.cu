#include "backends/cuda/torus/host/instance.cuh"

namespace crenel::backend::cuda::torus {

std::span<const RotateInstance> gadget_instances() {
  static const RotateInstance all[] = {
      fft_entry<false, i32, Gadget9, 2>("gadget-9-2"),
      fft_entry<false, i32, Gadget9>("gadget-9"),
      fft_entry<false, i32, Gadget9Small>("gadget-9-small"),
      fft_entry<false, i64, Gadget10>("gadget-10-wide"),
      fft_entry<false, i64, Gadget10Small>("gadget-10-wide-small"),
      split_entry<Split10, 2>("split-10-2"),
      split_entry<Split10>("split-10"),
      split_entry<Split10Small>("split-10-small"),
  };
  return all;
}

}  // namespace crenel::backend::cuda::torus
