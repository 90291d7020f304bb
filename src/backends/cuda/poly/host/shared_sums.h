// Hoisted sums of a batch that share what they read.
#pragma once

#include <span>

#include "backends/cuda/poly/kernels/shared_sums.cuh"

namespace crenel::backend::cuda {

/// An instance of shared_sums, and how it takes a batch.
struct SharedSums {
  void (*kernel)(SharedSumArgs) = nullptr;  ///< null: no instance, or nothing to share
  u32 values = 0;                           ///< of a thread
  u32 groups = 0, each = 0;                 ///< SharedSumArgs
};
/// `run`: values of an output that share a plaintext word.
SharedSums shared_sums_for(u32 giants, u32 digits, u32 batch, u32 run);

/// SharedSumArgs::log_stride for the elements of a launch.
u32 log_stride_of(std::span<const u64> elements, u32 log_n, u32 values);
/// Granules that a block reads of a digit in all steps together.
u32 distinct_granules(std::span<const u64> elements, u32 log_n, u32 values, u32 log_stride);

}  // namespace crenel::backend::cuda
