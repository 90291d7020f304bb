// Blind rotations with fewer levels in registers than the production shapes, which no plan prefers:
// for the tuner's table of BOLT-FHE's IPT and WPP, in builds with benchmarks only.
#include "backends/cuda/torus/host/instance.cuh"

namespace crenel::backend::cuda::torus {
namespace {

using Raising8Ipt8 = RotateShape<8, 2, 2, 4, 512, false>;
using Raising8Ipt16 = RotateShape<8, 3, 2, 4, 512, false>;
using Raising9Ipt4 = RotateShape<9, 1, 2, 4, 512, false>;
using Raising9Ipt8 = RotateShape<9, 2, 2, 4, 512, false>;
using Raising10Ipt8 = RotateShape<10, 2, 2, 4, 512, false>;
using Raising10Ipt16 = RotateShape<10, 3, 2, 4, 512, false>;

}  // namespace

std::span<const RotateInstance> study_instances() {
  static const RotateInstance all[] = {
      fft_entry<true, i32, Raising8Ipt16>("raising-8-ipt-16"),
      fft_entry<true, i32, Raising8Ipt8>("raising-8-ipt-8"),
      fft_entry<true, i32, Raising9Ipt8>("raising-9-ipt-8"),
      fft_entry<true, i32, Raising9Ipt4>("raising-9-ipt-4"),
      fft_entry<true, i32, Raising10Ipt16>("raising-10-ipt-16"),
      fft_entry<true, i32, Raising10Ipt8>("raising-10-ipt-8"),
  };
  return all;
}

}  // namespace crenel::backend::cuda::torus
