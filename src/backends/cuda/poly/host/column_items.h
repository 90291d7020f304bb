// How the destinations of a launch of convert_columns are divided among its blocks. No CUDA.
#pragma once

#include <vector>

#include "backends/cuda/poly/tuning/convert_columns.h"

namespace crenel::backend::cuda {

/// Destinations [begin, end) of one digit.
struct ColumnRange {
  u32 begin, end;
};

/// Items for all digits' `ranges`, each to be done for `copies` tiles and polynomials, the longest
/// first and of those the last destinations first (the pass after it starts with the first ones).
/// No item has more than `most` destinations, a multiple of eight; which number leaves the least
/// for the busiest of `processors` is found by dividing them as the GPU will: in order, to who is
/// free first.
std::vector<ColumnItem> column_items(const std::vector<ColumnRange>& ranges, u32 copies,
                                     u32 processors, u32 most);
/// Items of `outputs` destinations each.
std::vector<ColumnItem> equal_column_items(const std::vector<ColumnRange>& ranges, u32 outputs);

/// When the last of `processors` has done all `items`, in destinations' worth.
u64 column_makespan(const std::vector<ColumnItem>& items, u32 copies, u32 processors);

}  // namespace crenel::backend::cuda
