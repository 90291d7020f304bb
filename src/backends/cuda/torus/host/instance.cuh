// Makes the entry of one instance. Included by the files that compile them.
#pragma once

#include "backends/cuda/torus/device/fft_field.cuh"
#include "backends/cuda/torus/device/ntt_field.cuh"
#include "backends/cuda/torus/host/instances.h"
#include "backends/cuda/torus/tuning/rotation.h"

namespace crenel::backend::cuda::torus {

template <class Field, class Rules, class Shape, bool Ternary, u32 Polys>
RotateInstance entry(const char* name, bool fft, u32 limbs) {
  return {name,
          blind_rotate<Field, Rules, Shape, Ternary, Polys>,
          fft,
          limbs,
          Rules::Raising,
          Ternary,
          Rules::Pieces,
          Polys,
          sizeof(typename Field::Element),
          sizeof(typename Rules::Acc),
          sizeof(typename Rules::Operand),
          Shape::LP,
          Shape::RMax,
          Shape::OG,
          Shape::BT,
          Shape::Threads,
          Shape::Pad,
          Shape::Staged,
          Shape::Blocks,
          Shape::Tiles};
}
template <bool Raising, class Acc, class Shape, u32 Polys = 0, bool Ternary = true,
          class Operand = i32, u32 Pieces = 1>
RotateInstance fft_entry(const char* name) {
  using Rules = Accumulator<Raising, Acc, Operand, Pieces>;
  return entry<FftField<Rules, Shape::LP>, Rules, Shape, Ternary, Polys>(name, true, 1);
}
template <class Shape, u32 Polys = 0, bool Ternary = true, class Operand = i32>
RotateInstance split_entry(const char* name) {
  return fft_entry<false, i64, Shape, Polys, Ternary, Operand, 2>(name);
}
template <u32 L, bool Raising, class Acc, class Shape, bool Ternary = true, class Operand = i32>
RotateInstance ntt_entry(const char* name) {
  using Rules = Accumulator<Raising, Acc, Operand>;
  return entry<NttField<Rules, L>, Rules, Shape, Ternary, 0>(name, false, L);
}

}  // namespace crenel::backend::cuda::torus
