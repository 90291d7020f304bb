// Launches of the transform passes, shared by ntt, intt, mod_up and divide.
#pragma once

#include <variant>

#include "backends/cuda/poly/host/convert_view.h"
#include "backends/cuda/poly/host/tables.h"
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
using KeySwitchForm =
    std::variant<PlainSwitch, TurnedSwitch, ProductSwitch<false>, ProductSwitch<true>>;
void launch_key_switch_rows(device::Stream& stream, const TransformArgs& args, u32 limbs,
                            const KeySwitchTail& tail, const KeySwitchForm& form = PlainSwitch());
using RowSource = std::variant<PlainRows, ProductRows<false>, ProductRows<true>>;
void launch_row_inverse(device::Stream& stream, TransformArgs args, u32 limbs,
                        const RowSource& source = PlainRows());
/// With `scales` (one a limb) the result is multiplied and shifted for a base conversion, otherwise
/// canonical. `tiled`: with scales, where takes_tiles() (convert_columns.h).
void launch_column_inverse(device::Stream& stream, TransformArgs args, u32 limbs,
                           const InverseScale* scales, bool tiled = false);

/// TransformArgs::early of a pass that a base conversion follows.
inline u32 starts_conversion_early(device::Stream& stream) {
  return cuda_stream(stream).tuned(Tunable::conversion_early) != 0 ? 1 : 0;
}

/// Whether a pass over rows of so many limbs, all polynomials together, starts while the conversion
/// before it ends: where its warps fill all multiprocessors.
inline bool starts_rows_early(device::Stream& stream, u32 log_n, u64 limbs, u32 warps_per_sm) {
  const CudaStream& queue = cuda_stream(stream);
  const u64 wanted = queue.tuned(Tunable::passes_early), warps = (limbs << log_n) / (32 * 16);
  return wanted == 2 || (wanted == 1 && warps >= u64(queue.processors()) * warps_per_sm);
}

/// No component of any limb.
inline LimbBytes no_limbs() {
  LimbBytes bytes;
  for (u8& at : bytes.at) at = kNone;
  return bytes;
}

/// Arguments of passes that write these limbs of polynomials of this shape; what they read is not
/// said yet.
inline TransformArgs transform_args(const RingTables& tables, bool forward, const Poly<u32>& out,
                                    const ring::PolyShape& shape, const rns::LimbSet& limbs) {
  TransformArgs args = {};
  args.primes = tables.primes;
  const RingTables::Twiddles& twiddles = forward ? tables.forward : tables.inverse;
  args.roots = twiddles.pairs;
  args.last_roots = twiddles.last;
  args.small_roots = twiddles.words;
  args.out = out;
  args.log_n = shape.log_n;
  args.components = shape.components;
  args.polys = shape.polys();
  args.prime = prime_bytes(limbs);
  return args;
}
/// The same of passes that read them in `in`.
inline TransformArgs transform_args(const RingTables& tables, bool forward, const Poly<u32>& out,
                                    const ring::PolyView<const u32>& in,
                                    const rns::LimbSet& limbs) {
  TransformArgs args = transform_args(tables, forward, out, in.shape, limbs);
  args.in = poly(in);
  args.in_position = position_bytes(limbs, in.limbs);
  return args;
}

/// The same polynomial as input and output of a second pass.
inline TransformArgs in_place(TransformArgs args) {
  args.in = {args.out.data, args.out.component_stride, args.out.batch_stride};
  for (u32 l = 0; l < rns::kMaxLimbs; ++l) args.in_position.at[l] = static_cast<u8>(l);
  return args;
}

}  // namespace crenel::backend::cuda
