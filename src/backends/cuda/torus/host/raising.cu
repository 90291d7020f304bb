#include "backends/cuda/torus/host/instance.cuh"

namespace crenel::backend::cuda::torus {

std::span<const RotateInstance> raising_instances() {
  static const RotateInstance all[] = {
      fft_entry<true, i32, Raising8Pair, 4>("raising-8-pair-4"),
      fft_entry<true, i32, Raising8, 8>("raising-8-8"),
      fft_entry<true, i32, Raising8Pair>("raising-8-pair"),
      fft_entry<true, i32, Raising8>("raising-8"),
      fft_entry<true, i32, Raising8Small>("raising-8-small"),
      fft_entry<true, i32, Raising9Pair, 2>("raising-9-pair-2"),
      fft_entry<true, i32, Raising9, 4>("raising-9-4"),
      fft_entry<true, i32, Raising9Six, 6>("raising-9-6"),
      fft_entry<true, i32, Raising9Wide, 8>("raising-9-wide-8"),
      fft_entry<true, i32, Raising9Pair>("raising-9-pair"),
      fft_entry<true, i32, Raising9>("raising-9"),
      fft_entry<true, i32, Raising9Three>("raising-9-three"),
      fft_entry<true, i32, Raising9Wide>("raising-9-wide"),
      fft_entry<true, i32, Raising9Small>("raising-9-small"),
      fft_entry<true, i32, Raising10, 2>("raising-10-2"),
      fft_entry<true, i32, Raising10Three, 3>("raising-10-three-3"),
      fft_entry<true, i32, Raising10>("raising-10"),
      fft_entry<true, i32, Raising10Three>("raising-10-three"),
      fft_entry<true, i32, Raising10Small>("raising-10-small"),
      fft_entry<true, i32, Raising11, 2>("raising-11-2"),
      fft_entry<true, i32, Raising11>("raising-11"),
      fft_entry<true, i32, Raising11Small>("raising-11-small"),
  };
  return all;
}

}  // namespace crenel::backend::cuda::torus
