// Which base conversions a parameter set needs, and the proof that 64-bit accumulators hold them.
#pragma once

#include <span>
#include <vector>

#include "crenel/ckks/params.h"

namespace crenel::ckks {

/// One ModUp source: positions [begin, end) of the chain, converted at some level to the positions
/// [window_begin, window_end) without the source, and to every special prime.
struct DigitGroup {
  u32 begin = 0, end = 0;
  u32 window_begin = 0, window_end = 0;
};

/// The q primes in position order: tau_{T-1} .. tau_0 q_0 .. q_{M-1}.
std::vector<u64> chain_in_position_order(const Spec& spec);

/// All distinct ModUp sources of all levels: the digits are fixed blocks of `alpha` positions, cut
/// by the window of the level. A source that occurs at several levels gets the union of their
/// windows.
std::vector<DigitGroup> digit_groups(const Spec& spec, u32 alpha);

/// The accumulator bound of a fast base conversion from `sources` (product D) to `target` p:
///   sum_j ((D / d_j) mod p) (d_j - 1) + p.
/// Below 2^64 the sum of products never wraps, and one more addition of p (the offset that keeps a
/// signed reduction non-negative) is free.
u128 conversion_bound(std::span<const u64> sources, u64 target);

inline bool conversion_fits(std::span<const u64> sources, u64 target) {
  return conversion_bound(sources, target) < (static_cast<u128>(1) << 64);
}

}  // namespace crenel::ckks
