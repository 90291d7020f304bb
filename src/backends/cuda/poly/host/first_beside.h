// Limbs that are made before the others of a result.
#pragma once

#include "backends/cuda/poly/host/transform_launch.h"

namespace crenel::backend::cuda {

/// The bytes [first, ...) of a list.
inline LimbBytes from(const LimbBytes& bytes, u32 first) {
  LimbBytes s = no_limbs();
  for (u32 l = first; l < rns::kMaxLimbs; ++l) s.at[l - first] = bytes.at[l];
  return s;
}

/// Limbs [first, ...) as a polynomial of their own.
template <class Word>
Poly<Word> from(const Poly<Word>& p, u32 first, u32 log_n) {
  return {p.data + (u64(first) << log_n), p.component_stride, p.batch_stride};
}

/// f(first, count) for the stretches of limbs [begin, end) that are all in `those`, or all not.
template <class F>
void in_runs(const rns::LimbSet& limbs, u32 begin, u32 end, const rns::LimbSet& those, bool in,
             const F& f) {
  for (u32 l = begin, first = begin; l < end; first = l) {
    const bool found = those.contains(limbs[l]);
    while (l < end && those.contains(limbs[l]) == found) ++l;
    if (found == in) f(first, l - first);
  }
}

/// f(first, count) for limbs [begin, end) of a result: for those that are to be made first
/// (device::MadeFirst) beside the stream, then for the others. Who queues on the stream afterwards
/// may use the memory of both. Where there are none here, but were of limbs before, what goes
/// beside from now on starts after what these are made of: it tells other parts that sources are
/// read.
template <class F>
void first_beside(device::Stream& stream, const rns::LimbSet& limbs, u32 begin, u32 end,
                  const F& f) {
  device::MadeFirst* const first = cuda_stream(stream).made_first();
  if (first == nullptr) return f(begin, end - begin);
  bool forked = false;
  in_runs(limbs, begin, end, first->limbs(), true, [&](u32 at, u32 count) {
    if (!forked) device::fork_beside(stream), forked = true;
    const device::Beside beside(stream);
    f(at, count);
  });
  std::shared_ptr<device::Event> made;
  if (forked) {
    const device::Beside beside(stream);
    made = stream.mark();
    first->made_beside();
  } else if (first->made()) {
    device::fork_beside(stream);
  }
  in_runs(limbs, begin, end, first->limbs(), false, f);
  stream.wait_for(made);
}

}  // namespace crenel::backend::cuda
