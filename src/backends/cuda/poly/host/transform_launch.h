// Launches of the transform passes, shared by ntt, intt, mod_up and divide.
#pragma once

#include "backends/cuda/poly/kernels/key_switch_rows.cuh"
#include "backends/cuda/poly/kernels/ntt_columns.cuh"
#include "backends/cuda/poly/kernels/ntt_rows.cuh"
#include "backends/cuda/poly/kernels/row_divide.cuh"
#include "backends/cuda/stream.h"

namespace crenel::backend::cuda {

/// Lets the kernels of this ring size use more than 48 KiB of shared memory on a GPU. Returns
/// whether key_switch_rows fits.
bool allow_shared_memory(u32 log_n, const GpuModel& gpu);

// Passes over `limbs` limbs of every polynomial; inverse: rows first.

/// `skip`: per limb, the component to leave out, or kNone.
void launch_column_forward(device::Stream& stream, TransformArgs args, u32 limbs,
                           const LimbBytes& skip);
void launch_row_forward(device::Stream& stream, TransformArgs args, u32 limbs, const OwnLimbs& own);
void launch_row_divide(device::Stream& stream, const TransformArgs& args, u32 limbs,
                       const DivideTail& tail);
void launch_key_switch_rows(device::Stream& stream, const TransformArgs& args, u32 limbs,
                            const KeySwitchTail& tail);
void launch_row_inverse(device::Stream& stream, TransformArgs args, u32 limbs);
/// With `scales` (one a limb) the result is multiplied and shifted for a base conversion, otherwise
/// canonical.
void launch_column_inverse(device::Stream& stream, TransformArgs args, u32 limbs,
                           const InverseScale* scales);

/// No component of any limb.
inline LimbBytes no_limbs() {
  LimbBytes bytes;
  for (u8& at : bytes.at) at = kNone;
  return bytes;
}

/// The same polynomial as input and output of a second pass.
inline TransformArgs in_place(TransformArgs args) {
  args.in = {args.out.data, args.out.component_stride, args.out.batch_stride};
  for (u32 l = 0; l < rns::kMaxLimbs; ++l) args.in_position.at[l] = static_cast<u8>(l);
  return args;
}

}  // namespace crenel::backend::cuda
