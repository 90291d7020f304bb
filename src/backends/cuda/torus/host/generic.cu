#include "backends/cuda/torus/host/instance.cuh"

namespace crenel::backend::cuda::torus {

std::span<const RotateInstance> generic_instances() {
  static const RotateInstance all[] = {
      fft_entry<true, i32, AnyShape>("any-raising"),
      fft_entry<true, i32, AnyShape, 0, false>("any-raising-binary"),
      fft_entry<false, i32, AnyShape>("any-gadget"),
      fft_entry<false, i32, AnyShape, 0, false>("any-gadget-binary"),
      fft_entry<false, i64, AnyShape, 0, true, i64>("any-gadget-wide"),
      fft_entry<false, i64, AnyShape, 0, false, i64>("any-gadget-wide-binary"),
      split_entry<AnyShape, 0, true, i64>("any-split"),
      split_entry<AnyShape, 0, false, i64>("any-split-binary"),
      ntt_entry<1, false, i32, AnyShape>("any-exact-1"),
      ntt_entry<1, false, i32, AnyShape, false>("any-exact-1-binary"),
      ntt_entry<2, false, i64, AnyShape, true, i64>("any-exact-2"),
      ntt_entry<2, false, i64, AnyShape, false, i64>("any-exact-2-binary"),
      ntt_entry<1, true, i32, AnyShape>("any-exact-raising-1"),
      ntt_entry<1, true, i32, AnyShape, false>("any-exact-raising-1-binary"),
      ntt_entry<2, true, i64, AnyShape, true, i64>("any-exact-raising-2"),
      ntt_entry<2, true, i64, AnyShape, false, i64>("any-exact-raising-2-binary"),
  };
  return all;
}

}  // namespace crenel::backend::cuda::torus
