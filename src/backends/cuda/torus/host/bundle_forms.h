// The compiled blind rotations by groups of secret bits, and which of them serve a plan.
#pragma once

#include <vector>

#include "backends/cuda/stream.h"
#include "backends/cuda/torus/device/bundle.cuh"
#include "device/torus/plan.h"

namespace crenel::backend::cuda::torus {

struct BundleForm {
  const char* name;
  void (*kernel)(BundleArgs);
  u32 log_points, polys;  ///< that it is for; 0: any
  u32 rmax, threads;
  u32 rows;          ///< a block, or a cluster
  u32 cluster;       ///< blocks of one
  bool ahead;        ///< bundles are made by other blocks
  u32 made_rows;     ///< ... of so many rows by one
  u32 made_tiles;    ///< ... which take so many for a step
  u32 fixed_bytes;   ///< shared memory before the tables, where that is a constant
  bool differences;  ///< for steps of one element that add differences
  u32 pad;           ///< words between polynomials of the accumulator

  bool serves(const device::TorusPlan& plan) const;
  std::size_t shared_bytes(const device::TorusPlan& plan) const;
};

/// Those that serve a plan on such a GPU, the one for any size last.
std::vector<const BundleForm*> bundle_forms(const device::TorusPlan& plan, const GpuModel& gpu);
/// The one of them that takes a batch, or its first rows (tuning/bundles.h).
struct FormChoice {
  const BundleForm* form;
  u32 rows;
};
FormChoice choose_form(const std::vector<const BundleForm*>& forms, const device::TorusPlan& plan,
                       u32 batch, u32 processors);

}  // namespace crenel::backend::cuda::torus
