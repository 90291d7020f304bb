#include "backends/cuda/host/launch.cuh"
#include "backends/cuda/host/transform_launch.h"

namespace crenel::backend::cuda {
namespace {

// Also sets args.polys_per_block.
dim3 column_grid(TransformArgs& args, u32 bits, u32 limbs) {
  args.polys_per_block = kColumnPolysPerBlock;
  return {(1u << (args.log_n - bits)) / tile_columns(bits), limbs,
          divide_up(args.polys, args.polys_per_block)};
}

dim3 row_grid(TransformArgs& args, u32 bits, u32 limbs) {
  const u32 tiles = (1u << (args.log_n - bits)) / tile_rows(bits);
  args.polys_per_block = row_polys_per_block(tiles * limbs, args.polys);
  return {tiles, limbs, divide_up(args.polys, args.polys_per_block)};
}

template <u32 LogN>
void column_forward_of(device::Stream& stream, TransformArgs args, u32 limbs, ForwardTail tail,
                       const ForwardExtra& extra) {
  constexpr u32 kBits = column_bits(LogN);
  const dim3 grid = column_grid(args, kBits, limbs);
  launch(stream,
         tail == ForwardTail::copy_own ? column_forward<LogN, ForwardTail::copy_own>
                                       : column_forward<LogN, ForwardTail::plain>,
         grid, column_threads(kBits), 0, args, extra);
}

template <u32 LogN>
void column_inverse_of(device::Stream& stream, TransformArgs args, u32 limbs, InverseTail tail,
                       const InverseScale* scales) {
  constexpr u32 kBits = column_bits(LogN);
  const dim3 grid = column_grid(args, kBits, limbs);
  launch(stream,
         tail == InverseTail::centred ? column_inverse<LogN, InverseTail::centred>
                                      : column_inverse<LogN, InverseTail::canonical>,
         grid, column_threads(kBits), 0, args, scales);
}

template <u32 Bits>
void row_forward_of(device::Stream& stream, TransformArgs args, u32 limbs, ForwardTail tail,
                    const ForwardExtra& extra) {
  auto* kernel = tail == ForwardTail::plain      ? row_forward<Bits, ForwardTail::plain>
                 : tail == ForwardTail::copy_own ? row_forward<Bits, ForwardTail::copy_own>
                                                 : row_forward<Bits, ForwardTail::divide>;
  const dim3 grid = row_grid(args, Bits, limbs);
  launch(stream, kernel, grid, row_threads(Bits), 0, args, extra);
}

template <u32 Bits>
void row_inverse_of(device::Stream& stream, TransformArgs args, u32 limbs) {
  const dim3 grid = row_grid(args, Bits, limbs);
  launch(stream, row_inverse<Bits>, grid, row_threads(Bits), 0, args);
}

}  // namespace

void launch_column_forward(device::Stream& stream, const TransformArgs& args, u32 limbs,
                           ForwardTail tail, const ForwardExtra& extra) {
  switch (args.log_n) {
    case 10:
      return column_forward_of<10>(stream, args, limbs, tail, extra);
    case 11:
      return column_forward_of<11>(stream, args, limbs, tail, extra);
    case 12:
      return column_forward_of<12>(stream, args, limbs, tail, extra);
    case 13:
      return column_forward_of<13>(stream, args, limbs, tail, extra);
    case 14:
      return column_forward_of<14>(stream, args, limbs, tail, extra);
    case 15:
      return column_forward_of<15>(stream, args, limbs, tail, extra);
    case 16:
      return column_forward_of<16>(stream, args, limbs, tail, extra);
    default:
      return column_forward_of<17>(stream, args, limbs, tail, extra);
  }
}

void launch_row_forward(device::Stream& stream, const TransformArgs& args, u32 limbs,
                        ForwardTail tail, const ForwardExtra& extra) {
  switch (row_bits(args.log_n)) {
    case 5:
      return row_forward_of<5>(stream, args, limbs, tail, extra);
    case 6:
      return row_forward_of<6>(stream, args, limbs, tail, extra);
    case 7:
      return row_forward_of<7>(stream, args, limbs, tail, extra);
    case 8:
      return row_forward_of<8>(stream, args, limbs, tail, extra);
    default:
      return row_forward_of<9>(stream, args, limbs, tail, extra);
  }
}

void launch_row_inverse(device::Stream& stream, const TransformArgs& args, u32 limbs) {
  switch (row_bits(args.log_n)) {
    case 5:
      return row_inverse_of<5>(stream, args, limbs);
    case 6:
      return row_inverse_of<6>(stream, args, limbs);
    case 7:
      return row_inverse_of<7>(stream, args, limbs);
    case 8:
      return row_inverse_of<8>(stream, args, limbs);
    default:
      return row_inverse_of<9>(stream, args, limbs);
  }
}

void launch_column_inverse(device::Stream& stream, const TransformArgs& args, u32 limbs,
                           InverseTail tail, const InverseScale* scales) {
  switch (args.log_n) {
    case 10:
      return column_inverse_of<10>(stream, args, limbs, tail, scales);
    case 11:
      return column_inverse_of<11>(stream, args, limbs, tail, scales);
    case 12:
      return column_inverse_of<12>(stream, args, limbs, tail, scales);
    case 13:
      return column_inverse_of<13>(stream, args, limbs, tail, scales);
    case 14:
      return column_inverse_of<14>(stream, args, limbs, tail, scales);
    case 15:
      return column_inverse_of<15>(stream, args, limbs, tail, scales);
    case 16:
      return column_inverse_of<16>(stream, args, limbs, tail, scales);
    default:
      return column_inverse_of<17>(stream, args, limbs, tail, scales);
  }
}

}  // namespace crenel::backend::cuda
