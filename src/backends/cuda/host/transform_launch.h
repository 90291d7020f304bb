// Launches of the transform passes, shared by ntt, intt, mod_up and divide.
#pragma once

#include "backends/cuda/host/stream.h"
#include "backends/cuda/kernels/ntt.cuh"

namespace crenel::backend::cuda {

/// Passes over `limbs` limbs of every polynomial. Inverse: rows first.
void launch_column_forward(device::Stream& stream, const TransformArgs& args, u32 limbs,
                           ForwardTail tail, const ForwardExtra& extra);
void launch_row_forward(device::Stream& stream, const TransformArgs& args, u32 limbs,
                        ForwardTail tail, const ForwardExtra& extra);
void launch_row_inverse(device::Stream& stream, const TransformArgs& args, u32 limbs);
void launch_column_inverse(device::Stream& stream, const TransformArgs& args, u32 limbs,
                           InverseTail tail, const InverseScale* scales);

/// The same polynomial as input and output of a second pass.
inline TransformArgs in_place(TransformArgs args) {
  args.in = {args.out.data, args.out.component_stride, args.out.batch_stride};
  for (u32 l = 0; l < rns::kMaxLimbs; ++l) args.in_position.at[l] = static_cast<u8>(l);
  return args;
}

}  // namespace crenel::backend::cuda
