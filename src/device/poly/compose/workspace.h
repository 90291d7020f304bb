// Temporary polynomials and view helpers of the default compositions.
#pragma once

#include <vector>

#include "device/poly/kernels.h"

namespace crenel::device::compose {

/// A dense polynomial in memory of the stream's pool, given back on destruction.
class Temporary {
 public:
  Temporary(Stream& stream, PolyShape shape, const LimbSet& limbs, Domain domain)
      : buffer_(stream.allocate_limbs(
            limbs, {.rows = shape.polys(), .limb_bytes = sizeof(u32) << shape.log_n})),
        view_(buffer_.as<u32>(), shape, limbs, domain) {}
  PolyView<u32> view() const { return view_; }

 private:
  Buffer buffer_;
  PolyView<u32> view_;
};

inline void clear(Stream& stream, const PolyView<u32>& v) {
  const std::size_t bytes = (std::size_t(v.limbs.size()) << v.shape.log_n) * sizeof(u32);
  for (u32 b = 0; b < v.shape.batch; ++b)
    for (u32 c = 0; c < v.shape.components; ++c) stream.fill_zero(v.limb(b, c, 0), bytes);
}

template <class View>
View with_domain(View v, Domain domain) {
  v.domain = domain;
  return v;
}

template <class View>
View batch_entry(View v, u32 entry) {
  v.data += entry * v.batch_stride;
  v.shape.batch = 1;
  return v;
}

/// A stretch of limbs at consecutive positions of two limb sets.
struct Run {
  u32 first = 0;   ///< position in the first set
  u32 second = 0;  ///< position in the second set
  u32 count = 0;
};

/// The members that both sets have, as the longest runs that are consecutive in both; in the order
/// of `first`.
inline std::vector<Run> common_runs(const LimbSet& first, const LimbSet& second) {
  std::vector<Run> runs;
  for (u32 i = 0; i < first.size(); ++i) {
    const int at = second.find(first[i]);
    if (at < 0) continue;
    const u32 j = static_cast<u32>(at);
    if (!runs.empty() && runs.back().first + runs.back().count == i &&
        runs.back().second + runs.back().count == j)
      ++runs.back().count;
    else
      runs.push_back({i, j, 1});
  }
  return runs;
}

}  // namespace crenel::device::compose
