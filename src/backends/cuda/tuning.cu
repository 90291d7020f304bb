// What launches go by before anybody tunes them: parts by the cache, small grids by the
// multiprocessors, early launches and blocks in pairs by the compute capability. All else was
// measured on an H200 or an H100 (the headers of tuning/ say where) and begins so on other GPUs,
// too.
#include "backends/cuda/cluster.cuh"
#include "backends/cuda/poly/tuning/convert_columns.h"
#include "backends/cuda/poly/tuning/ntt.h"
#include "backends/cuda/poly/tuning/plain_sums.h"
#include "backends/cuda/stream.h"
#include "backends/cuda/torus/tuning/key_switch.h"

namespace crenel::backend::cuda {

device::Tuning default_tuning(const GpuModel& model) {
  device::Tuning t = {};
  const auto set = [&](Tunable tunable, u64 value) { t[u32(tunable)] = value; };
  set(Tunable::part_bytes, chain_bytes(model.l2_bytes));
  set(Tunable::row_polys, kRowPolysPerBlock);
  set(Tunable::row_blocks, row_min_blocks(model.processors));
  set(Tunable::conversion_start, kConvertSetup);
  set(Tunable::conversion_outputs, kConvertMaxOutputs);
  set(Tunable::sums_walk, kSumsWalk);
  set(Tunable::folded_matrices, kFoldedMatrices);
  const bool overlap = model.compute_major >= kOverlapMajor;
  set(Tunable::conversion_early, overlap ? kConversionEarly : 0);
  set(Tunable::conversion_granule, kFusedGranule);
  set(Tunable::conversion_pairs, model.compute_major == kClusterMajor ? kConversionPairs : 0);
  set(Tunable::passes_early, overlap ? kPassesEarly : 0);
  set(Tunable::discard_read, kDiscardRead);
  set(Tunable::switch_rows, torus::kTiledSwitchRows);
  set(Tunable::switch_blocks, torus::kSwitchBlocksEach);
  return t;
}

}  // namespace crenel::backend::cuda
