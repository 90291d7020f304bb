// What launches go by before anybody tunes them.
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
  set(Tunable::conversion_early, kConversionEarly);
  set(Tunable::conversion_granule, kFusedGranule);
  set(Tunable::passes_early, kPassesEarly);
  set(Tunable::switch_rows, torus::kTiledSwitchRows);
  set(Tunable::switch_blocks, torus::kSwitchBlocksEach);
  return t;
}

}  // namespace crenel::backend::cuda
