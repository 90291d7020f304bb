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

/// Steps of an item of which it has half of the columns.
inline u32 half_steps(const ColumnItem& item) {
  const u32 ends = ((item.halves & kLowHalf) != 0) + ((item.halves & kHighHalf) != 0);
  return std::min(ends, column_steps(item.count));
}
/// Destinations of these.
inline u32 half_destinations(const ColumnItem& item) {
  const u32 steps = column_steps(item.count), low = std::min<u32>(item.count, kFusedTogether);
  if (steps == 1) return item.halves != 0 ? item.count : 0;
  return ((item.halves & kLowHalf) != 0 ? low : 0) +
         ((item.halves & kHighHalf) != 0 ? item.count - (steps - 1) * kFusedTogether : 0);
}

/// What an item costs a block, in destinations of whole steps: any part of the destinations of a
/// step takes the time of all.
inline u64 column_cost(const ColumnItem& item) {
  const u32 halves = half_steps(item);
  return kFusedSetup + u64(kFusedTogether) * (column_steps(item.count) - halves) +
         u64(kFusedHalf) * halves;
}

/// Appends items for one digit: `groups` shares of its steps, as equal as whole numbers of `unit`
/// halves of a step (1 or 2) can be, the longest first.
inline void append_items(std::vector<ColumnItem>& items, u32 digit, const ColumnRange& range,
                         u32 groups, u32 unit) {
  if (range.begin >= range.end) return;
  const u32 halves = 2 * column_steps(range.end - range.begin);
  bool upper = false;
  for (u32 at = 0; at < halves; --groups, upper = !upper) {
    const u32 share = ((halves - at + groups - 1) / groups + unit - 1) / unit * unit;
    const u32 next = std::min(at + share, halves);
    const u32 begin = range.begin + at / 2 * kFusedTogether;
    const u32 end = std::min(range.begin + (next + 1) / 2 * kFusedTogether, range.end);
    u32 shared = (at % 2 != 0 ? kLowHalf : 0) | (next % 2 != 0 ? kHighHalf : 0);
    if (shared != 0 && upper) shared |= kUpperHalf;
    items.push_back({static_cast<u8>(digit), static_cast<u8>(begin), static_cast<u8>(end - begin),
                     static_cast<u8>(shared)});
    at = next;
  }
}

/// Items for all digits, of `groups[digit]` shares each; the longest first and of those the last
/// destinations first (the pass after it starts with the first ones).
inline std::vector<ColumnItem> shared_items(const std::vector<ColumnRange>& ranges,
                                            const std::vector<u32>& groups, u32 unit) {
  std::vector<ColumnItem> items;
  for (u32 digit = 0; digit < ranges.size(); ++digit)
    append_items(items, digit, ranges[digit], groups[digit], unit);
  std::stable_sort(items.begin(), items.end(), [](const ColumnItem& a, const ColumnItem& b) {
    const u64 x = column_cost(a), y = column_cost(b);
    return x != y ? x > y : a.begin > b.begin;
  });
  return items;
}

/// Items of `outputs` destinations each.
inline std::vector<ColumnItem> equal_column_items(const std::vector<ColumnRange>& ranges,
                                                  u32 outputs) {
  std::vector<ColumnItem> items;
  for (u32 digit = 0; digit < ranges.size(); ++digit)
    for (u32 at = ranges[digit].begin; at < ranges[digit].end; at += outputs)
      items.push_back({static_cast<u8>(digit), static_cast<u8>(at),
                       static_cast<u8>(std::min(outputs, ranges[digit].end - at)), 0});
  return items;
}

/// When the last of `processors` has done all `items`; in units of column_cost.
inline u64 column_makespan(const std::vector<ColumnItem>& items, u32 copies, u32 processors) {
  std::map<u64, u64> loads = {{0, processors}};  // how many processors are busy until when
  for (const ColumnItem& item : items) {
    const u64 cost = column_cost(item);
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

/// The division that is over first, of those that a search tries.
class ColumnSearch {
 public:
  ColumnSearch(const std::vector<ColumnRange>& ranges, u32 copies, u32 processors, u32 most)
      : ranges_(ranges), copies_(copies), processors_(processors), most_(most) {
    for (const ColumnRange& range : ranges)
      halves_.push_back(2 * column_steps(range.end - std::min(range.begin, range.end)));
  }

  /// Shares of all digits with as many halves of a step at most, multiples of `unit`; then a share
  /// more for single digits, as long as that helps.
  void equal_shares(u32 unit) {
    const u32 longest = *std::max_element(halves_.begin(), halves_.end());
    for (u32 share = std::min(longest, 2 * most_ / kFusedTogether) / unit * unit; share > 0;
         share -= unit) {
      std::vector<u32> groups;
      for (const u32 halves : halves_) groups.push_back((halves + share - 1) / share);
      attempt(groups, unit);
    }
    for (bool better = true; better;) {
      better = false;
      for (u32 digit = 0; digit < ranges_.size(); ++digit) {
        std::vector<u32> groups = groups_;
        if (++groups[digit] <= halves_[digit] / unit) better = attempt(groups, unit) || better;
      }
    }
  }

  const std::vector<ColumnItem>& items() const { return items_; }

 private:
  bool attempt(const std::vector<u32>& groups, u32 unit) {
    auto items = shared_items(ranges_, groups, unit);
    for (const ColumnItem& item : items)
      if (item.count > most_) return false;
    const u64 span = column_makespan(items, copies_, processors_);
    if (span >= span_) return false;
    span_ = span, items_ = std::move(items), groups_ = groups;
    return true;
  }

  const std::vector<ColumnRange>& ranges_;
  u32 copies_, processors_, most_;
  std::vector<u32> halves_, groups_;
  std::vector<ColumnItem> items_;
  u64 span_ = ~u64(0);
};

/// Items for all digits' `ranges`, each to be done for `copies` tiles and polynomials, in the order
/// of shared_items. No item has more than `most` destinations, a multiple of eight; which number
/// leaves the least for the busiest of `processors` is found by dividing them as the GPU will: in
/// order, to who is free first. Shares are whole steps, or with `halves` end with half a step where
/// that ends earlier.
inline std::vector<ColumnItem> column_items(const std::vector<ColumnRange>& ranges, u32 copies,
                                            u32 processors, u32 most, bool halves) {
  if (ranges.empty()) return {};
  ColumnSearch search(ranges, copies, processors, most);
  search.equal_shares(2);
  if (halves) search.equal_shares(1);
  return search.items();
}

}  // namespace crenel::backend::cuda
