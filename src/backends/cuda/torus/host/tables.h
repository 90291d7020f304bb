// Device tables of the blind rotation: twiddles in the pass order of each instance, roots,
// constants.
#pragma once

#include <map>

#include "backends/cuda/memory.h"
#include "backends/cuda/torus/host/instances.h"

namespace crenel::backend::cuda::torus {

class TorusTables {
 public:
  TorusTables(const std::shared_ptr<CudaDevice>& device, const device::TorusPlan& plan,
              bool by_fft);

  /// Uploads the twiddles for passes of at most `rmax` levels, if they are not there. Allocates and
  /// waits: for constructors.
  void prepare(u32 rmax);
  /// Everything of RotateArgs that does not change from call to call, for a prepared `rmax`.
  RotateArgs arguments(u32 rmax) const;

 private:
  std::shared_ptr<CudaDevice> device_;
  bool by_fft_;
  u32 limbs_;
  RotateArgs common_ = {};
  std::unique_ptr<DeviceBytes> roots_;
  struct Ordered {
    std::unique_ptr<DeviceBytes> memory;
    std::size_t forward[kMaxPrimes], inverse[kMaxPrimes];
    u32 count;
    double2 first[kFirstComplex];
    Pair first_forward[kMaxPrimes][kFirstPairs], first_inverse[kMaxPrimes][kFirstPairs];
  };
  std::map<u32, Ordered> ordered_;  ///< by rmax
  /// Host tables in tree order: entry 2^d + b.
  std::vector<double2> complex_tree_;
  std::vector<Pair> forward_tree_[kMaxPrimes], inverse_tree_[kMaxPrimes];
};

}  // namespace crenel::backend::cuda::torus
