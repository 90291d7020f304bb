// Limbs to the memory of several GPUs: read once, stored to each.
#pragma once

#include "backends/cuda/poly/device/views.cuh"
#include "backends/cuda/poly/tuning/elementwise.h"
#include "backends/cuda/ptx.cuh"

namespace crenel::backend::cuda {

inline constexpr u32 kSpreadTargets = 16;

struct SpreadArgs {
  Poly<const u32> from;
  Poly<u32> to[kSpreadTargets];  ///< its own memory, or another GPU's that it may write
  u32 targets;
  u32 log_n;
  u32 components;
  LimbBytes position;  ///< of each limb in the targets
};

/// Four values a thread.
__global__ void __launch_bounds__(kElementThreads)
    spread_limbs(const __grid_constant__ SpreadArgs args) {
  begin_kernel();
  const u32 limb = blockIdx.y, poly = blockIdx.z;
  const u32 b = poly / args.components, c = poly % args.components;
  const u32 at = 4 * (threadIdx.x + blockIdx.x * kElementThreads);
  if (at >= 1u << args.log_n) return;
  const uint4 words = load4(args.from.limb(b, c, limb, args.log_n) + at);
  for (u32 t = 0; t < args.targets; ++t)
    store4(args.to[t].limb(b, c, args.position.at[limb], args.log_n) + at, words);
}

}  // namespace crenel::backend::cuda
