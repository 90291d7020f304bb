#include "backends/cuda/poly/device/walk.h"

#include <gtest/gtest.h>

#include <vector>

#include "crenel/core/error.h"

namespace crenel::backend::cuda {
namespace {

// In a ring of 2^log_count values, whose granules are single values: the k-th of a walk is where a
// rotation by 2^log_stride takes the one before from.
TEST(Walk, VisitsEveryGranuleOnceInStepsOfRotations) {
  for (u32 log_count = 3; log_count <= 12; ++log_count)
    for (u32 log_stride = 0; log_stride + 1 < log_count; ++log_stride) {
      SCOPED_TRACE(cat("2^", log_count, " granules, stride 2^", log_stride));
      const u64 element =
          ring::galois_element_for_rotation(static_cast<i64>(1) << log_stride, log_count);
      const u32 count = 1u << log_count, run = count >> (log_stride + 1);
      std::vector<u32> visits(count, 0);
      for (u32 w = 0; w < count; ++w) {
        const u32 granule = granule_on_walk(w, log_count, log_stride);
        ASSERT_LT(granule, count);
        ++visits[granule];
        if (w % run == run - 1) continue;  // the last of its walk
        EXPECT_EQ(ring::galois_eval_source(granule, element, log_count),
                  granule_on_walk(w + 1, log_count, log_stride));
      }
      EXPECT_EQ(visits, std::vector<u32>(count, 1));
    }
}

// Granules of a larger ring: all values of one come from those of one.
TEST(Walk, GranulesAreRotatedWhole) {
  constexpr u32 kLogN = 13, kLogCount = 7;
  for (const i64 steps : {1, 2, 12, 64, 2048}) {
    const u64 element = ring::galois_element_for_rotation(steps, kLogN);
    for (u32 at = 0; at < 1u << kLogN; ++at)
      EXPECT_EQ(ring::galois_eval_source(at, element, kLogN) >> (kLogN - kLogCount),
                ring::galois_eval_source(at >> (kLogN - kLogCount),
                                         element & ((2u << kLogCount) - 1), kLogCount));
  }
}

}  // namespace
}  // namespace crenel::backend::cuda
