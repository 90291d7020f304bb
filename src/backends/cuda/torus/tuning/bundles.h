// Shapes of the blind rotation by groups of secret bits, and which of them takes a batch: chosen by
// measurement (dev/kernels/README.md, "Rotations by groups"; the figures of all are in
// dev/kernels/results/bundles-1.jsonl and bench/results/tfhe-forms-lut4-128g4-h100.json, where
// ahead-10-2-joint of here is ahead-10-2-joint-four).
#pragma once

#include "backends/cuda/torus/kernels/bundle_rotate.cuh"
#include "backends/cuda/torus/kernels/cluster_rotate.cuh"
#include "backends/cuda/torus/kernels/difference_rotate.cuh"

namespace crenel::backend::cuda::torus {

//                         LP RMax P  O  R Threads
using Bundle10 = BundleShape<10, 4, 2, 2, 1, 256>;      ///< lut4-128: a row a block
using Bundle10Rows = BundleShape<10, 4, 2, 2, 4, 512>;  ///< ... four
using Bundle8 = BundleShape<8, 4, 4, 4, 1, 128>;        ///< bool128
using Bundle8Rows = BundleShape<8, 4, 4, 1, 4, 512>;    ///< ... four
//                         LP RMax P Threads
using Single10 = AheadShape<10, 4, 2, 256>;
using Ahead10 = ClusterShape<10, 2, 2, 256>;
using Ahead10Joint = ClusterShape<10, 4, 2, 128, true>;
using Ahead8 = ClusterShape<8, 2, 4, 64>;
//                                LP RMax P OG BT Threads
using Difference8 = DifferenceShape<8, 4, 8, 4, 4, 512>;     ///< bool128-packed with five messages
using Difference8Two = DifferenceShape<8, 4, 8, 2, 4, 512>;  ///< ... two outputs a thread
using Difference8One = DifferenceShape<8, 3, 8, 1, 1, 512>;  ///< ... a row a block
using Difference8Any = DifferenceShape<8, 4, 0, 1, 4, 512>;  ///< up to seven polynomials

/// Which form takes a batch, by log2 of the points and bits a step (sizes between: as the smaller
/// one): the first row with at least as many rows, `at_once` of them at a time. What is beyond the
/// last row's goes in whole multiples of its `at_once`, and the rest by the table again. Rows are
/// for 132 multiprocessors.
struct BundleChoice {
  u32 log_points, step;
  u32 up_to, at_once;
  const char* form;
};
inline constexpr u32 kChoiceProcessors = 132;
// clang-format off
inline constexpr BundleChoice kBundleChoices[] = {
    {10, 1, 66, 66, "ahead-10-2"},  // steps of 1: as 2
    {10, 1, 264, 264, "bundles-10-2"},
    {10, 1, 528, 528, "bundles-10-2-rows"},
    {10, 2, 66, 66, "ahead-10-2"},  // 66 rows: 2.76 ms against 3.26 of the next
    {10, 2, 264, 264, "bundles-10-2"},  // 264 rows: 3.86 ms against 6.18
    {10, 2, 528, 528, "bundles-10-2-rows"},
    {10, 4, 16, 16, "ahead-10-2-joint"},  // a row 0.84 ms against 0.90, 8 rows 0.89 against 0.96
    {10, 4, 48, 48, "ahead-10-2"},  // 33 rows: 1.17 ms against 1.33 and 1.49
    {10, 4, 132, 132, "ahead-10-2-single"},  // 66 rows: 1.89 ms against 2.03; 132: 3.49 against 4.35
    {10, 4, 264, 264, "bundles-10-2"},  // 264 rows: 4.59 ms against 6.01
    {10, 4, 528, 528, "bundles-10-2-rows"},
    {8, 1, 33, 33, "ahead-8-4"},  // steps of 1: as 2
    {8, 1, 132, 132, "bundles-8-4"},
    {8, 1, 528, 528, "bundles-8-4-rows"},
    {8, 2, 33, 33, "ahead-8-4"},  // 33 rows: 1.26 ms against 2.03
    {8, 2, 132, 132, "bundles-8-4"},  // 132 rows: 2.09 ms against 3.16
    {8, 2, 528, 528, "bundles-8-4-rows"},
    {8, 4, 33, 33, "ahead-8-4"},  // 33 rows: 1.92 ms against 3.35
    {8, 4, 132, 132, "bundles-8-4"},  // 132 rows: 3.43 ms against 3.82
    {8, 4, 528, 528, "bundles-8-4-rows"},
    // By differences. 12,672 rows: 356 thousand a second, 320 with -two, 204 with -one.
    {8, 1, 132, 132, "differences-8-8-one"},
    {8, 1, 528, 528, "differences-8-8"},
    {8, 1, 528, 528, "differences-8"},
};
// clang-format on

/// Bundles made ahead: steps of a launch, and bytes of their bundles, of which two such parts are
/// to stay in the second-level cache.
inline constexpr u32 kAheadSteps = 32;
inline constexpr u64 kAheadBytes = u64(16) << 20;

}  // namespace crenel::backend::cuda::torus
