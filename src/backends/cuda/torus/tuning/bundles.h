// Shapes of the blind rotation by groups of secret bits, and which of them takes a batch: chosen by
// measurement (dev/kernels/README.md, "Blind rotation"; bench/results/tfhe-forms-*.json holds the
// figures of all).
#pragma once

#include "backends/cuda/torus/kernels/bundle_rotate.cuh"
#include "backends/cuda/torus/kernels/cluster_rotate.cuh"

namespace crenel::backend::cuda::torus {

//                         LP RMax P  O  R Threads Blocks
using Bundle10 = BundleShape<10, 4, 2, 2, 1, 256>;      ///< lut4-128g4: a row a block
using Bundle10Rows = BundleShape<10, 4, 2, 2, 4, 512>;  ///< ... four
using Bundle8 = BundleShape<8, 4, 4, 4, 1, 128>;        ///< bool128g4
using Bundle8Rows = BundleShape<8, 4, 4, 1, 4, 512>;    ///< ... four
//                           LP RMax P Threads Ahead
using Cluster10 = ClusterShape<10, 2, 2, 256, false>;
using Cluster10Three = ClusterShape<10, 3, 2, 128, false>;
using Ahead10 = ClusterShape<10, 2, 2, 256, true>;
using Ahead10Three = ClusterShape<10, 3, 2, 128, true>;
using Ahead10Joint = ClusterShape<10, 2, 2, 256, true, true>;
using Ahead10JointThree = ClusterShape<10, 3, 2, 128, true, true>;
using Ahead10JointFour = ClusterShape<10, 4, 2, 128, true, true>;
using Ahead8Joint = ClusterShape<8, 2, 4, 64, true, true>;
using Cluster8 = ClusterShape<8, 2, 4, 64, false>;
using Ahead8 = ClusterShape<8, 2, 4, 64, true>;
using Ahead8Three = ClusterShape<8, 3, 4, 64, true>;

/// Rows up to which a form is taken, by log2 of the points and keys a step; the last one of a plan
/// has no limit.
struct BundleChoice {
  u32 log_points, log_keys;
  u32 up_to;
  const char* form;
};
inline constexpr u32 kNoLimit = 0xffffffff;
inline constexpr BundleChoice kBundleChoices[] = {
    {10, 1, 33, "ahead-10-2"},
    {10, 1, 132, "cluster-10-2"},
    {10, 1, 264, "bundles-10-2"},
    {10, 1, kNoLimit, "bundles-10-2-rows"},
    {10, 2, 33, "ahead-10-2"},
    {10, 2, 132, "cluster-10-2"},
    {10, 2, 264, "bundles-10-2"},
    {10, 2, kNoLimit, "bundles-10-2-rows"},
    {10, 4, 66, "ahead-10-2"},
    {10, 4, 132, "cluster-10-2"},
    {10, 4, 264, "bundles-10-2"},
    {10, 4, kNoLimit, "bundles-10-2-rows"},
    {8, 1, 33, "ahead-8-4"},
    {8, 1, 132, "cluster-8-4"},
    {8, 1, kNoLimit, "bundles-8-4-rows"},
    {8, 2, 33, "ahead-8-4"},
    {8, 2, 132, "cluster-8-4"},
    {8, 2, kNoLimit, "bundles-8-4-rows"},
    {8, 4, 33, "ahead-8-4"},
    {8, 4, 132, "cluster-8-4"},
    {8, 4, kNoLimit, "bundles-8-4-rows"},
};

/// Bundles made ahead: steps of a launch, and bytes of their bundles, of which two such parts are
/// to stay in the second-level cache.
inline constexpr u32 kAheadSteps = 32;
inline constexpr u64 kAheadBytes = u64(16) << 20;

}  // namespace crenel::backend::cuda::torus
