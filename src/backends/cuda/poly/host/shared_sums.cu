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

// `batch` entries in groups of about the same size, up to `most`.
SharedSums grouped(Kernel kernel, u32 giants, u32 most, u32 batch) {
  const u32 groups = divide_up(batch, most);
  return {kernel, kPlainSums / (2 * giants * most), groups, divide_up(batch, groups)};
}

u32 log_granules(u32 log_n, u32 values) {
  const u32 log_granule = 5 + static_cast<u32>(std::countr_zero(values));
  return log_n - std::min(log_n, log_granule);
}

}  // namespace

// One giant step and one digit is what the first factor after a raised modulus has.
SharedSums shared_sums_for(u32 giants, u32 digits, u32 batch, u32 run) {
  if (batch < 2 || giants > kFewGiants) return {};
  if (batch == 2 || giants > kFewGiants / 2)
    return grouped(kernel_of<kFewGiants, kFewEntries>(digits, run == 1), kFewGiants, kFewEntries,
                   batch);
  // Threads of four values would meet two words where each is repeated once.
  if (giants == 1 && digits == 1 && run != 2)
    return grouped(kernel_of<1, kManyEntries, 1>(run == 1), 1, kManyEntries, batch);
  return grouped(kernel_of<kFewGiants / 2, kManyEntries>(digits, run == 1), kFewGiants / 2,
                 kManyEntries, batch);
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
