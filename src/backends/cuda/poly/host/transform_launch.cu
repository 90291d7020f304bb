#include <algorithm>
#include <type_traits>

#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/transform_launch.h"

namespace crenel::backend::cuda {
namespace {

template <u32 Value>
using Constant = std::integral_constant<u32, Value>;

template <u32 First, u32 Last, class F>
auto pick(u32 value, const F& f) {
  if constexpr (First < Last)
    if (value != First) return pick<First + 1, Last>(value, f);
  return f(Constant<First>());
}

// f(Constant<value>), where that was compiled.
template <u32 First, u32 Last, class F>
auto with_constant(const char* what, u32 value, const F& f) {
  if (value < First || value > Last)
    throw UnsupportedError(cat("transform: ", what, " ", value, ", expected ", First, "..", Last),
                           {{what, value}});
  return pick<First, Last>(value, f);
}

template <class F>
auto with_log_n(u32 log_n, const F& f) {
  return with_constant<kMinFastLogN, kMaxLogN>("log_n", log_n, f);
}

// Rows of every such ring.
template <class F>
auto with_row_bits(u32 log_n, const F& f) {
  return with_constant<row_bits(kMinFastLogN), row_bits(kMaxLogN)>("row_bits", row_bits(log_n), f);
}

// What sources of rows and forms of a key switch read and multiply besides.
traffic::RowWork work_of(const PlainRows&) { return {}; }
template <bool Square>
traffic::RowWork work_of(const ProductRows<Square>& rows) {
  const u32 sums = rows.z.data != nullptr;
  return {.reads = (Square ? 0 : 1) + sums, .products = 2 + sums};
}
traffic::SwitchWork work_of(const PlainSwitch&) { return {}; }
traffic::SwitchWork work_of(const TurnedSwitch& form) { return {.adds = form.adds != 0}; }
template <bool Square>
traffic::SwitchWork work_of(const ProductSwitch<Square>& form) {
  return {.limbs = form.limbs, .factors = Square ? 1u : 2u, .sums = form.z.data != nullptr};
}

u32 row_tiles(const TransformArgs& args) {
  const u32 bits = row_bits(args.log_n);
  return (1u << (args.log_n - bits)) / tile_rows(bits);
}

dim3 column_grid(const TransformArgs& args, u32 limbs) {
  const u32 bits = column_bits(args.log_n);
  return {(1u << (args.log_n - bits)) / tile_columns(bits), args.polys, limbs};
}
// Whether a column pass of as many blocks as that over rows before it starts while that ends: where
// both fit the GPU together.
u32 starts_columns_early(device::Stream& stream, u64 blocks) {
  const CudaStream& queue = cuda_stream(stream);
  const u64 wanted = queue.tuned(Tunable::passes_early);
  return wanted == 2 || (wanted == 1 && 2 * blocks <= u64(queue.processors()) * kNttBlocksPerSm);
}
// Also sets args.polys_per_block.
dim3 row_grid(device::Stream& stream, TransformArgs& args, u32 limbs) {
  const CudaStream& queue = cuda_stream(stream);
  const u32 tiles = row_tiles(args);
  args.polys_per_block = row_polys_per_block(tiles * limbs, args.polys,
                                             static_cast<u32>(queue.tuned(Tunable::row_polys)),
                                             static_cast<u32>(queue.tuned(Tunable::row_blocks)));
  return {tiles, divide_up(args.polys, args.polys_per_block), limbs};
}

template <u32 LogN>
void column_forward_of(device::Stream& stream, const TransformArgs& args, u32 limbs,
                       const LimbBytes& skip) {
  const dim3 grid = column_grid(args, limbs);
  const auto cost = [&] { return traffic::column_pass("column_forward", args, limbs, skip); };
  launch(stream, cost, column_forward<LogN>, grid, kColumnThreads<kColumnBits<LogN>>, 0, args,
         skip);
}

template <u32 LogN>
auto* column_inverse_kernel(bool shifted, bool tiled) {
  if constexpr (LogN >= kMinFusedLogN) {
    if (tiled) return column_inverse<LogN, InverseTail::tiled>;
  } else if (tiled) {
    throw UnsupportedError(
        cat("tiled sources: log_n ", LogN, ", expected ", kMinFusedLogN, "..", kMaxLogN),
        {{"log_n", LogN}});
  }
  return shifted ? column_inverse<LogN, InverseTail::shifted>
                 : column_inverse<LogN, InverseTail::canonical>;
}

template <u32 LogN>
void column_inverse_of(device::Stream& stream, TransformArgs args, u32 limbs,
                       const InverseScale* scales, bool tiled) {
  // a base conversion follows
  args.early = scales != nullptr ? starts_conversion_early(stream) : 0;
  const dim3 grid = column_grid(args, limbs);
  const auto cost = [&] { return traffic::column_pass("column_inverse", args, limbs, no_limbs()); };
  launch(stream, cost, column_inverse_kernel<LogN>(scales != nullptr, tiled), grid,
         kColumnThreads<kColumnBits<LogN>>, 0, args, scales);
}

template <u32 Bits>
void row_forward_of(device::Stream& stream, TransformArgs args, u32 limbs, const OwnLimbs& own) {
  const dim3 grid = row_grid(stream, args, limbs);
  const auto cost = [&] { return traffic::row_forward(args, limbs, own); };
  launch(stream, cost, row_forward<Bits>, grid, kRowThreads<Bits>, 0, args, own);
}

template <u32 Bits, class Source>
void row_inverse_of(device::Stream& stream, TransformArgs args, u32 limbs, const Source& source) {
  const dim3 grid = row_grid(stream, args, limbs);
  args.early = starts_columns_early(stream, u64(grid.x) * args.polys * limbs);
  const auto cost = [&] { return traffic::row_inverse(args, limbs, work_of(source)); };
  launch(stream, cost, row_inverse<Bits, Source>, grid, kRowThreads<Bits>, 0, args, source);
}

template <u32 Bits>
void row_divide_of(device::Stream& stream, const TransformArgs& args, u32 limbs,
                   const DivideTail& tail) {
  const auto cost = [&] { return traffic::row_divide(args, limbs, tail); };
  launch(stream, cost, row_divide<Bits>, dim3(row_tiles(args), args.polys, limbs),
         kRowThreads<Bits>, kRowDivideBytes<Bits>, args, tail);
}

// Blocks of dropped limbs take longest: those that a launch ends with come before its last round,
// and no earlier, since what they write is read next.
LimbOrder order_of(const DroppedRows& dropped, u32 limbs, u64 blocks_of_limb, u64 resident) {
  u32 moved = 0;
  while (moved < limbs && dropped.has(limbs - 1 - moved)) ++moved;
  return LimbOrder::before_last_round(moved, limbs, blocks_of_limb, resident);
}

template <u32 Bits, u32 Entries, class Form>
void key_switch_rows_of(device::Stream& stream, const TransformArgs& args, u32 limbs,
                        KeySwitchTail tail, const Form& form) {
  const auto cost = [&] {
    return traffic::key_switch_rows(args, limbs, tail, work_of(form), Entries);
  };
  const dim3 grid((1u << (args.log_n - Bits)) / kKeySwitchRows<Bits, Entries>,
                  divide_up(args.polys / args.components, Entries), limbs);
  // pairs lose what they gain: dropped limbs leave L2 (dev/kernels/README.md, b38)
  if constexpr (Entries == 1)
    tail.order = order_of(tail.dropped, limbs, u64(grid.x) * grid.y,
                          u64(kKeySwitchBlocksPerSm) * cuda_stream(stream).processors());
  launch(stream, cost, key_switch_rows<Bits, Entries, Form>, grid,
         dim3(kKeySwitchThreads<Bits, Entries>, Entries), kKeySwitchRowBytes<Bits, Entries>, args,
         tail, form);
}

template <u32 Bits, class Form>
void key_switch_rows_of(device::Stream& stream, const TransformArgs& args, u32 limbs,
                        const KeySwitchTail& tail, const Form& form) {
  const CudaStream& queue = cuda_stream(stream);
  if (args.polys > args.components && queue.on(Optimisation::shared_keys) &&
      kKeySwitchRowBytes<Bits, 2> <= queue.model().shared_bytes)
    key_switch_rows_of<Bits, 2>(stream, args, limbs, tail, form);
  else
    key_switch_rows_of<Bits, 1>(stream, args, limbs, tail, form);
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
  constexpr u32 bytes = kKeySwitchRowBytes<Bits, 1>, more = kKeySwitchRowBytes<Bits, 2>;
  if (bytes > gpu.shared_bytes) return false;
  const auto allow_all = [&]<class Form>(const Form*) {
    allow(key_switch_rows<Bits, 1, Form>, bytes);
    if (more <= gpu.shared_bytes) allow(key_switch_rows<Bits, 2, Form>, more);
  };
  allow_all(static_cast<const PlainSwitch*>(nullptr));
  allow_all(static_cast<const TurnedSwitch*>(nullptr));
  allow_all(static_cast<const ProductSwitch<false>*>(nullptr));
  allow_all(static_cast<const ProductSwitch<true>*>(nullptr));
  return true;
}

}  // namespace

bool allow_shared_memory(u32 log_n, const GpuModel& gpu) {
  return with_row_bits(log_n, [&](auto bits) { return allow_shared_of<bits()>(gpu); });
}

void launch_column_forward(device::Stream& stream, TransformArgs args, u32 limbs,
                           const LimbBytes& skip) {
  with_log_n(args.log_n,
             [&](auto log_n) { column_forward_of<log_n()>(stream, args, limbs, skip); });
}

void launch_column_inverse(device::Stream& stream, TransformArgs args, u32 limbs,
                           const InverseScale* scales, bool tiled) {
  with_log_n(args.log_n,
             [&](auto log_n) { column_inverse_of<log_n()>(stream, args, limbs, scales, tiled); });
}

void launch_row_forward(device::Stream& stream, TransformArgs args, u32 limbs,
                        const OwnLimbs& own) {
  with_row_bits(args.log_n, [&](auto bits) { row_forward_of<bits()>(stream, args, limbs, own); });
}

void launch_row_inverse(device::Stream& stream, TransformArgs args, u32 limbs,
                        const RowSource& source) {
  with_row_bits(args.log_n, [&](auto bits) {
    std::visit([&](const auto& rows) { row_inverse_of<bits()>(stream, args, limbs, rows); },
               source);
  });
}

void launch_row_divide(device::Stream& stream, const TransformArgs& args, u32 limbs,
                       const DivideTail& tail) {
  with_row_bits(args.log_n, [&](auto bits) { row_divide_of<bits()>(stream, args, limbs, tail); });
}

void launch_key_switch_rows(device::Stream& stream, const TransformArgs& args, u32 limbs,
                            const KeySwitchTail& tail, const KeySwitchForm& form) {
  with_row_bits(args.log_n, [&](auto bits) {
    std::visit([&](const auto& f) { key_switch_rows_of<bits()>(stream, args, limbs, tail, f); },
               form);
  });
}

}  // namespace crenel::backend::cuda
