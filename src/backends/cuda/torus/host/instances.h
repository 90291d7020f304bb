// The compiled blind rotations, and which of them serve a plan.
#pragma once

#include <span>
#include <string>

#include "backends/cuda/torus/device/rotate_args.cuh"
#include "device/torus/plan.h"

namespace crenel::backend::cuda::torus {

struct RotateInstance {
  const char* name;
  void (*kernel)(RotateArgs);
  bool fft;  ///< double precision; else residues modulo `limbs` primes
  u32 limbs;
  bool raising;
  bool ternary;
  u32 pieces;  ///< that a digit is multiplied in
  u32 polys;   ///< of the accumulator; 0: any
  u32 element_bytes, acc_bytes, operand_bytes;
  u32 lp, rmax, og, bt, threads;
  u32 pad;  ///< words between accumulator polynomials
  bool staged;
  u32 blocks;  ///< a multiprocessor
  u32 tiles;   ///< staged: points that a thread keeps sums for

  /// Fits the arithmetic and the sizes of a plan.
  bool serves(const device::TorusPlan& plan, bool by_fft) const;
  u32 log_points(const device::TorusPlan& plan) const { return fft ? plan.log_n - 1 : plan.log_n; }
  /// Largest group of rows a block within this shared memory, a multiple of bt; 0: none.
  u32 largest_group(const device::TorusPlan& plan, std::size_t shared_bytes) const;
  /// `spilled`: the points lie in global memory.
  std::size_t shared_bytes(const device::TorusPlan& plan, u32 group, bool spilled) const;
  /// Of the points of one block.
  std::size_t work_bytes(const device::TorusPlan& plan, u32 group) const;
  /// log2 of the points that a block multiplies at a time.
  u32 log_tile(const device::TorusPlan& plan, u32 group) const;
};

std::span<const RotateInstance> raising_instances();
std::span<const RotateInstance> gadget_instances();
std::span<const RotateInstance> exact_instances();
std::span<const RotateInstance> generic_instances();
/// In builds with CRENEL_TORUS_STUDY.
std::span<const RotateInstance> study_instances();

}  // namespace crenel::backend::cuda::torus
