#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/transform_launch.h"

namespace crenel::backend::cuda {
namespace {

u32 row_tiles(const TransformArgs& args) {
  const u32 bits = row_bits(args.log_n);
  return (1u << (args.log_n - bits)) / tile_rows(bits);
}

// Also sets args.polys_per_block.
dim3 column_grid(TransformArgs& args, u32 limbs) {
  const u32 bits = column_bits(args.log_n);
  args.polys_per_block = kColumnPolysPerBlock;
  return {(1u << (args.log_n - bits)) / tile_columns(bits),
          divide_up(args.polys, args.polys_per_block), limbs};
}
dim3 row_grid(TransformArgs& args, u32 limbs) {
  const u32 tiles = row_tiles(args);
  args.polys_per_block = row_polys_per_block(tiles * limbs, args.polys);
  return {tiles, divide_up(args.polys, args.polys_per_block), limbs};
}

template <u32 LogN>
void column_forward_of(device::Stream& stream, TransformArgs args, u32 limbs,
                       const LimbBytes& skip) {
  const dim3 grid = column_grid(args, limbs);
  const auto cost = [&] { return traffic::column_pass("column_forward", args, limbs, skip); };
  launch(stream, cost, column_forward<LogN>, grid, kColumnThreads<kColumnBits<LogN>>, 0, args,
         skip);
}

template <u32 LogN>
void column_inverse_of(device::Stream& stream, TransformArgs args, u32 limbs,
                       const InverseScale* scales) {
  const dim3 grid = column_grid(args, limbs);
  const auto cost = [&] { return traffic::column_pass("column_inverse", args, limbs, no_limbs()); };
  launch(stream, cost,
         scales ? column_inverse<LogN, InverseTail::centred>
                : column_inverse<LogN, InverseTail::canonical>,
         grid, kColumnThreads<kColumnBits<LogN>>, 0, args, scales);
}

template <u32 Bits>
void row_forward_of(device::Stream& stream, TransformArgs args, u32 limbs, const OwnLimbs& own) {
  const dim3 grid = row_grid(args, limbs);
  const auto cost = [&] { return traffic::row_forward(args, limbs, own); };
  launch(stream, cost, row_forward<Bits>, grid, kRowThreads<Bits>, 0, args, own);
}

template <u32 Bits>
void row_inverse_of(device::Stream& stream, TransformArgs args, u32 limbs) {
  const dim3 grid = row_grid(args, limbs);
  const auto cost = [&] { return traffic::row_inverse(args, limbs); };
  launch(stream, cost, row_inverse<Bits>, grid, kRowThreads<Bits>, 0, args);
}

template <u32 Bits>
void row_divide_of(device::Stream& stream, const TransformArgs& args, u32 limbs,
                   const DivideTail& tail) {
  const auto cost = [&] { return traffic::row_divide(args, limbs, tail); };
  launch(stream, cost, row_divide<Bits>, dim3(row_tiles(args), args.polys, limbs),
         kRowThreads<Bits>, kRowDivideBytes<Bits>, args, tail);
}

template <u32 Bits>
void key_switch_rows_of(device::Stream& stream, const TransformArgs& args, u32 limbs,
                        const KeySwitchTail& tail) {
  const auto cost = [&] { return traffic::key_switch_rows(args, limbs, tail); };
  launch(stream, cost, key_switch_rows<Bits>,
         dim3(row_tiles(args), args.polys / args.components, limbs), kRowThreads<Bits>,
         kKeySwitchRowBytes<Bits>, args, tail);
}

template <u32 Bits>
bool allow_shared_of(const GpuModel& gpu) {
  const auto allow = [&](auto* kernel, u32 bytes) {
    if (gpu.index == kDry) return;
    const DeviceGuard guard(gpu.index);
    CRENEL_CUDA_TRY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                         static_cast<int>(bytes)));
  };
  allow(row_divide<Bits>, kRowDivideBytes<Bits>);
  if (kKeySwitchRowBytes < Bits >> gpu.shared_bytes) return false;
  allow(key_switch_rows<Bits>, kKeySwitchRowBytes<Bits>);
  return true;
}

}  // namespace

bool allow_shared_memory(u32 log_n, const GpuModel& gpu) {
  switch (row_bits(log_n)) {
    case 5:
      return allow_shared_of<5>(gpu);
    case 6:
      return allow_shared_of<6>(gpu);
    case 7:
      return allow_shared_of<7>(gpu);
    case 8:
      return allow_shared_of<8>(gpu);
    default:
      return allow_shared_of<9>(gpu);
  }
}

void launch_column_forward(device::Stream& stream, TransformArgs args, u32 limbs,
                           const LimbBytes& skip) {
  switch (args.log_n) {
    case 10:
      return column_forward_of<10>(stream, args, limbs, skip);
    case 11:
      return column_forward_of<11>(stream, args, limbs, skip);
    case 12:
      return column_forward_of<12>(stream, args, limbs, skip);
    case 13:
      return column_forward_of<13>(stream, args, limbs, skip);
    case 14:
      return column_forward_of<14>(stream, args, limbs, skip);
    case 15:
      return column_forward_of<15>(stream, args, limbs, skip);
    case 16:
      return column_forward_of<16>(stream, args, limbs, skip);
    default:
      return column_forward_of<17>(stream, args, limbs, skip);
  }
}

void launch_column_inverse(device::Stream& stream, TransformArgs args, u32 limbs,
                           const InverseScale* scales) {
  switch (args.log_n) {
    case 10:
      return column_inverse_of<10>(stream, args, limbs, scales);
    case 11:
      return column_inverse_of<11>(stream, args, limbs, scales);
    case 12:
      return column_inverse_of<12>(stream, args, limbs, scales);
    case 13:
      return column_inverse_of<13>(stream, args, limbs, scales);
    case 14:
      return column_inverse_of<14>(stream, args, limbs, scales);
    case 15:
      return column_inverse_of<15>(stream, args, limbs, scales);
    case 16:
      return column_inverse_of<16>(stream, args, limbs, scales);
    default:
      return column_inverse_of<17>(stream, args, limbs, scales);
  }
}

void launch_row_forward(device::Stream& stream, TransformArgs args, u32 limbs,
                        const OwnLimbs& own) {
  switch (row_bits(args.log_n)) {
    case 5:
      return row_forward_of<5>(stream, args, limbs, own);
    case 6:
      return row_forward_of<6>(stream, args, limbs, own);
    case 7:
      return row_forward_of<7>(stream, args, limbs, own);
    case 8:
      return row_forward_of<8>(stream, args, limbs, own);
    default:
      return row_forward_of<9>(stream, args, limbs, own);
  }
}

void launch_row_inverse(device::Stream& stream, TransformArgs args, u32 limbs) {
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

void launch_row_divide(device::Stream& stream, const TransformArgs& args, u32 limbs,
                       const DivideTail& tail) {
  switch (row_bits(args.log_n)) {
    case 5:
      return row_divide_of<5>(stream, args, limbs, tail);
    case 6:
      return row_divide_of<6>(stream, args, limbs, tail);
    case 7:
      return row_divide_of<7>(stream, args, limbs, tail);
    case 8:
      return row_divide_of<8>(stream, args, limbs, tail);
    default:
      return row_divide_of<9>(stream, args, limbs, tail);
  }
}

void launch_key_switch_rows(device::Stream& stream, const TransformArgs& args, u32 limbs,
                            const KeySwitchTail& tail) {
  switch (row_bits(args.log_n)) {
    case 5:
      return key_switch_rows_of<5>(stream, args, limbs, tail);
    case 6:
      return key_switch_rows_of<6>(stream, args, limbs, tail);
    case 7:
      return key_switch_rows_of<7>(stream, args, limbs, tail);
    case 8:
      return key_switch_rows_of<8>(stream, args, limbs, tail);
    default:
      return key_switch_rows_of<9>(stream, args, limbs, tail);
  }
}

}  // namespace crenel::backend::cuda
