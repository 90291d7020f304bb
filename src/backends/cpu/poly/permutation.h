// The block structure of automorphisms in evaluation form.
#pragma once

#include "backends/cpu/poly/kernels.h"

namespace crenel::backend::cpu {

/// Index i = block * lanes + lane of a bit-reversed row stands for k = r(block) + (N / lanes)
/// r(lane), r = bit reversal on the respective bits; out[i] = in[i'] with k' = e k + (e - 1) / 2
/// mod N. Modulo N / lanes, k' depends on the block alone: a block comes from one block, and its
/// lanes are permuted in one of `lanes` ways, told apart by the top bits of k' at lane 0.
struct CpuPolyKernels::Permutation {
  /// inverse: for every source block, where it goes.
  Permutation(Stream& stream, u64 element, u32 log_n, u32 lanes, bool inverse);

  BlockPermutation view() const { return {source, shift, pattern}; }

  device::Buffer storage;
  u32* source;
  u8* shift;
  u32 pattern[kMaxLanes][kMaxLanes];
};

}  // namespace crenel::backend::cpu
