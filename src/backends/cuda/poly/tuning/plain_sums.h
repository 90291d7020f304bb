// Shapes of the sums of plaintext products and of linear combinations. Plain data, no CUDA.
#pragma once

#include "crenel/core/types.h"

namespace crenel::backend::cuda {

inline constexpr u32 kPlainThreads = 128;
/// Sums of 64 bits in the registers of a thread: giant steps times 2 components times values.
inline constexpr u32 kPlainSums = 32;
/// Values of a thread: as many as that leaves, at most a load of 16 bytes.
constexpr u32 sum_values(u32 giants, u32 entries) {
  const u32 most = kPlainSums / (2 * giants * entries);
  return most < 4 ? most : 4;
}
/// Giant steps of the two variants; more of them take several launches.
inline constexpr u32 kFewGiants = 4, kManyGiants = 8;
/// Baby steps of one launch: they travel as kernel arguments.
inline constexpr u32 kLaunchBabies = 32;
/// Forms of their keys, by limbs: keys that serve levels up to different ones differ. More of them
/// take several launches.
inline constexpr u32 kLaunchKeyForms = 4;
/// Blocks a multiprocessor, which bounds the registers: 168 a thread for 3, 128 for 4, the most
/// that fit without spilling. `Digits` of the key product: 0 stands for any number. Not measured
/// yet.
template <u32 Giants, u32 Digits>
inline constexpr u32 kHoistedBlocksPerSm =
    Giants == kManyGiants && 0 < Digits && Digits < 5 ? 4 : 3;
inline constexpr u32 kPlainBlocksPerSm = 4;
/// Entries of a batch that a thread takes together: kFewEntries with up to kFewGiants giant steps,
/// kManyEntries with up to half as many.
inline constexpr u32 kFewEntries = 2, kManyEntries = 4;
/// Blocks a multiprocessor of such a kernel: as many as fit without spilling. Other numbers were
/// not measured.
template <u32 Giants, u32 Entries>
inline constexpr u32 kSharedBlocksPerSm = Entries == kFewEntries                ? 4
                                          : Entries == 1 && Giants < kFewGiants ? 6 - Giants
                                                                                : 3;
/// Whether warps of a block take runs of values that rotations bring to each other (device/walk.h).
inline constexpr u32 kSumsWalk = 1;

/// Of one launch of linear_combination: inputs, and words of scalars (one a limb and input, two
/// where a scalar differs between the halves). 4 KiB of arguments hold them.
inline constexpr u32 kCombinationTerms = 24;
inline constexpr u32 kCombinationWords = 720;
/// Inputs whose loads are in flight together.
inline constexpr u32 kCombinationInFlight = 4;

}  // namespace crenel::backend::cuda
