// What a tuner asks of TorusKernels that have several compiled ways to run a blind rotation.
#pragma once

#include <string>
#include <vector>

#include "crenel/core/types.h"

namespace crenel::device {

/// A compiled way to run blind_rotate.
struct RotationShape {
  std::string name;
  u32 rows = 1;               ///< at rest, that a block takes through the steps together
  u32 items_per_thread = 0;   ///< coefficients of a polynomial in a thread's registers (IPT)
  double warps_per_poly = 0;  ///< that cooperate on a polynomial (WPP): 32 WPP IPT = N
  u32 threads = 0;
  u32 registers = 0;
  u64 local_bytes = 0;   ///< a thread, spilled registers
  u64 shared_bytes = 0;  ///< a block
};

/// Kernels with a choice derive from this too: dynamic_cast from TorusKernels.
class RotationTuner {
 public:
  virtual ~RotationTuner() = default;
  /// Ways to run it, the preferred one first; at least one.
  virtual std::vector<RotationShape> shapes() const = 0;
  /// From now on takes shape `index` with `rows` rows a block (0: its most); UnsupportedError where
  /// it has none such. Not for use while other threads run the same kernels.
  virtual void use_shape(std::size_t index, u32 rows) = 0;
};

}  // namespace crenel::device
