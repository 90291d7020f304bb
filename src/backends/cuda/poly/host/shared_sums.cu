#include <algorithm>
#include <bit>
#include <set>

#include "backends/cuda/launch.cuh"
#include "backends/cuda/poly/host/shared_sums.h"

namespace crenel::backend::cuda {
namespace {

using Kernel = void (*)(SharedSumArgs);

template <u32 Giants, u32 Entries, u32 Digits>
Kernel kernel_of(bool full) {
  return full ? shared_sums<Giants, Entries, true, Digits>
              : shared_sums<Giants, Entries, false, Digits>;
}

template <u32 Giants, u32 Entries>
Kernel kernel_of(u32 digits, bool full) {
  switch (digits) {
    case 1:
      return kernel_of<Giants, Entries, 1>(full);
    case 2:
      return kernel_of<Giants, Entries, 2>(full);
    case 3:
      return kernel_of<Giants, Entries, 3>(full);
    case 4:
      return kernel_of<Giants, Entries, 4>(full);
    default:
      return kernel_of<Giants, Entries, 0>(full);
  }
}

// The instance, and `batch` entries in groups of about the same size.
template <u32 Giants, u32 Entries>
SharedSums instance(u32 digits, u32 batch, bool full) {
  const u32 groups = divide_up(batch, Entries);
  Kernel kernel = nullptr;
  // Of one giant step: what the first factor after a raised modulus has.
  if constexpr (Giants == 1)
    kernel = kernel_of<Giants, Entries, 1>(full);
  else
    kernel = kernel_of<Giants, Entries>(digits, full);
  return {kernel, sum_values(Giants, Entries), groups, divide_up(batch, groups)};
}

u32 log_granules(u32 log_n, u32 values) {
  const u32 log_granule = 5 + static_cast<u32>(std::countr_zero(values));
  return log_n - std::min(log_n, log_granule);
}

}  // namespace

SharedSums shared_sums_for(u32 giants, u32 digits, u32 batch, u32 run) {
  const bool full = run == 1, single = giants == 1 && digits == 1;
  // Threads of four values would meet two words where each is repeated once.
  const bool four = run != 2;
  if (giants > kFewGiants || (batch == 1 && !four)) return {};
  constexpr u32 kFewer = kFewGiants / 2;
  if (batch == 1)
    return single             ? instance<1, 1>(digits, batch, full)
           : giants <= kFewer ? instance<kFewer, 1>(digits, batch, full)
                              : instance<kFewGiants, 1>(digits, batch, full);
  if (batch == 2 || giants > kFewer) return instance<kFewGiants, kFewEntries>(digits, batch, full);
  return single && four ? instance<1, kManyEntries>(digits, batch, full)
                        : instance<kFewer, kManyEntries>(digits, batch, full);
}

// Elements that differ from the first by 5^k, k a multiple of 2^s and of no more, differ from it by
// 1 modulo 2^(s + 2) and no more. Those that conjugate, too, follow no walk.
u32 log_stride_of(std::span<const u64> elements, u32 log_n, u32 values) {
  const u32 log_count = log_granules(log_n, values), mask = (2u << log_n) - 1;
  u32 stride = kNoWalk;
  for (const u64 element : elements) {
    const u32 ratio = static_cast<u32>(element * ring::galois_inverse(elements[0], log_n)) & mask;
    if (ratio != 1 && ratio % 4 == 1)
      stride = std::min(stride, static_cast<u32>(std::countr_zero(ratio - 1)) - 2);
  }
  // A block in natural order stays within its values when residues modulo those of its granules
  // together do not change.
  constexpr u32 kLogWarps = std::countr_zero(kPlainThreads / 32);
  return stride + 1 + kLogWarps < log_count ? stride : kNoWalk;
}

u32 distinct_granules(std::span<const u64> elements, u32 log_n, u32 values, u32 log_stride) {
  const u32 log_count = log_granules(log_n, values), mask = (2u << log_count) - 1;
  std::set<u32> residues;
  const u32 warps = std::min(kPlainThreads / 32, 1u << log_count);
  for (u32 w = 0; w < warps; ++w) {
    const u32 granule = log_stride == kNoWalk ? w : granule_on_walk(w, log_count, log_stride);
    const u32 residue = 2 * ring::bit_reverse(granule, log_count) + 1;
    for (const u64 element : elements) residues.insert(residue * static_cast<u32>(element) & mask);
  }
  return static_cast<u32>(residues.size());
}

}  // namespace crenel::backend::cuda
