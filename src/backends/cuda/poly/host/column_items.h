// How the destinations of a launch of convert_columns are divided among its blocks. No CUDA.
#pragma once

#include <algorithm>
#include <map>
#include <vector>

#include "backends/cuda/poly/tuning/convert_columns.h"

namespace crenel::backend::cuda {

/// Destinations [begin, end) of one digit.
struct ColumnRange {
  u32 begin, end;
};

inline u32 column_steps(u32 destinations) {
  return (destinations + kFusedTogether - 1) / kFusedTogether;
}

inline void append_item(std::vector<ColumnItem>& items, u32 digit, u32 begin, u32 end) {
  items.push_back({static_cast<u8>(digit), static_cast<u8>(begin), static_cast<u8>(end - begin)});
}

/// What such a number of destinations costs a block, in eighths of a destination's worth of a whole
/// step: products of matrices take a whole step's time for any part of it (kFusedProducts).
inline u64 column_cost(u32 destinations) {
  const u32 whole = destinations / kFusedTogether, rest = destinations % kFusedTogether;
  const u32 part = rest == 0 ? 0 : 8 * kFusedProducts + (8 - kFusedProducts) * rest;
  return 8 * (kFusedSetup + u64(kFusedTogether) * whole) + part;
}

/// As few items a digit as have `most` steps each, of about as many destinations, a multiple of
/// `granule`; the longest first.
inline std::vector<ColumnItem> even_items(const std::vector<ColumnRange>& ranges, u32 most,
                                          u32 granule) {
  std::vector<ColumnItem> items;
  for (u32 digit = 0; digit < ranges.size(); ++digit) {
    const auto [begin, end] = ranges[digit];
    if (begin >= end) continue;
    u32 groups = (column_steps(end - begin) + most - 1) / most;
    for (u32 at = begin; at < end; --groups) {
      const u32 share = ((end - at + groups - 1) / groups + granule - 1) / granule * granule;
      const u32 next = std::min(at + std::min(share, most * kFusedTogether), end);
      append_item(items, digit, at, next);
      at = next;
    }
  }
  const auto worth = [&](const ColumnItem& item) {
    return (item.count + granule - 1) / granule * granule;
  };
  std::stable_sort(items.begin(), items.end(), [&](const ColumnItem& a, const ColumnItem& b) {
    return worth(a) != worth(b) ? worth(a) > worth(b) : a.begin > b.begin;
  });
  return items;
}

/// Items of `outputs` destinations each.
inline std::vector<ColumnItem> equal_column_items(const std::vector<ColumnRange>& ranges,
                                                  u32 outputs) {
  std::vector<ColumnItem> items;
  for (u32 digit = 0; digit < ranges.size(); ++digit)
    for (u32 at = ranges[digit].begin; at < ranges[digit].end; at += outputs)
      append_item(items, digit, at, std::min(at + outputs, ranges[digit].end));
  return items;
}

/// Puts items of one digit side by side, each with the next of it, otherwise in their order, so
/// that two blocks bring its sources together. False, and as they are, where a digit has an odd
/// number, and where not all blocks run at once: pairs would wait for two processors side by side.
inline bool pair_items(std::vector<ColumnItem>& items, u32 copies, u32 processors) {
  if (u64(copies) * items.size() > processors) return false;
  std::vector<ColumnItem> pairs, left = items;
  while (!left.empty()) {
    const auto other = std::find_if(left.begin() + 1, left.end(), [&](const ColumnItem& item) {
      return item.digit == left.front().digit;
    });
    if (other == left.end()) return false;
    pairs.insert(pairs.end(), {left.front(), *other});
    left.erase(other);
    left.erase(left.begin());
  }
  items = pairs;
  return true;
}

/// When the last of `processors` has done all `items`, their destinations rounded up to multiples
/// of `granule`; in units of column_cost.
inline u64 column_makespan(const std::vector<ColumnItem>& items, u32 copies, u32 processors,
                           u32 granule) {
  std::map<u64, u64> loads = {{0, processors}};  // how many processors are busy until when
  for (const ColumnItem& item : items) {
    const u64 cost = column_cost((item.count + granule - 1) / granule * granule);
    for (u64 left = copies; left > 0;) {
      const auto first = loads.begin();
      const u64 taken = std::min(first->second, left), until = first->first + cost;
      if (taken == first->second)
        loads.erase(first);
      else
        first->second -= taken;
      loads[until] += taken;
      left -= taken;
    }
  }
  return loads.rbegin()->first;
}

/// Items for all digits' `ranges`, each to be done for `copies` tiles and polynomials, the longest
/// first and of those the last destinations first (the pass after it starts with the first ones).
/// No item has more than `most` destinations, a multiple of eight; which number leaves the least
/// for the busiest of `processors` is found by dividing them as the GPU will: in order, to who is
/// free first. Shares are whole steps, or multiples of `granule` where that ends earlier.
inline std::vector<ColumnItem> column_items(const std::vector<ColumnRange>& ranges, u32 copies,
                                            u32 processors, u32 most, u32 granule) {
  std::vector<ColumnItem> best;
  u64 best_span = ~u64(0);
  u32 longest = 0;
  for (const ColumnRange& range : ranges)
    longest = std::max(longest, column_steps(range.end - std::min(range.begin, range.end)));
  for (const u32 multiple : {kFusedTogether, granule}) {
    for (u32 steps = std::min(longest, most / kFusedTogether); steps > 0; --steps) {
      auto items = even_items(ranges, steps, multiple);
      const u64 span = column_makespan(items, copies, processors, granule);
      if (span < best_span) best = std::move(items), best_span = span;
    }
  }
  return best;
}

}  // namespace crenel::backend::cuda
