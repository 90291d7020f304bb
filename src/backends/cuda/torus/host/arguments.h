// What the launchers of several kernels state and fill in alike.
#pragma once

#include <algorithm>

#include "crenel/device/account.h"
#include "device/torus/kernels.h"

namespace crenel::backend::cuda {

/// Of a launch that multiplies little: bytes alone.
inline device::LaunchRecord plain_record(const char* kernel, device::Work work, u64 read,
                                         u64 written) {
  device::LaunchRecord record;
  record.kernel = kernel;
  record.work = work;
  record.limbs = record.polys = 1;
  record.read_bytes = read;
  record.written_bytes = written;
  return record;
}

/// Sizes of a key switch.
template <class Args>
void fill_shape(Args& args, const device::SwitchShape& shape) {
  args.in_dim = shape.in_dim;
  args.out_dim = shape.out_dim;
  args.slots = shape.slots;
  args.base_log = shape.base_log;
  args.digits = shape.digits;
  args.log_modulus = shape.log_modulus;
  args.log_out_modulus = shape.log_out_modulus;
}

/// Words of mask that a block of a key switch takes where `wanted` parts fill the GPU: a multiple
/// of `unit`.
inline u32 part_of(u32 in_dim, u64 wanted, u32 unit) {
  const u64 parts = std::clamp<u64>(wanted, 1, in_dim), each = (in_dim + parts - 1) / parts;
  return static_cast<u32>((each + unit - 1) / unit * unit);
}

}  // namespace crenel::backend::cuda
