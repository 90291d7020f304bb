// In which order blocks go through the values of a polynomial in evaluation form, so that rotations
// by multiples of a stride read what neighbours read. No CUDA.
#pragma once

#include "ring/ring.h"

namespace crenel::backend::cuda {

inline constexpr u32 kNoWalk = 32;

/// The granule, one of 2^log_count runs of values in evaluation form, that the w-th warp works on.
///
/// Values of a granule are those at roots with equal exponents modulo 2^(log_count + 1), its
/// *residue*; a rotation by k multiplies residues by 5^k. Residues are 5^k or -5^k, and neighbours
/// in w are 2^log_stride apart in k. So where baby steps rotate by multiples of 2^log_stride, what
/// a warp reads in one step its neighbour reads in the next: most of a block's digits come from the
/// first-level cache. Natural order would have each warp read another granule in each step.
CRENEL_HD u32 granule_on_walk(u32 w, u32 log_count, u32 log_stride) {
  const u32 bits = log_count - 1, run = bits - log_stride;  // of k; of neighbours on one walk
  const u32 k = (w & ((1u << run) - 1)) << log_stride | (w >> run & ((1u << log_stride) - 1));
  u32 residue = w >> bits == 0 ? 1 : ~0u, power = 5;
  for (u32 b = 0; b < bits; ++b, power *= power)
    if (k >> b & 1) residue *= power;
#if defined(__CUDA_ARCH__)
  return __brev(residue >> 1) >> (32 - log_count);
#else
  return ring::bit_reverse(residue >> 1, log_count);
#endif
}

}  // namespace crenel::backend::cuda
