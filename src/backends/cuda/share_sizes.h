// How the multiprocessors of a GPU are divided into parts. No CUDA.
#pragma once

#include "crenel/core/types.h"

namespace crenel::backend::cuda {

/// Multiprocessors that a part has a multiple of, all but the last one, which takes the rest: the
/// driver's rule, by compute capability (CUDA driver API, "Green Contexts").
constexpr u32 share_granule(int compute_major) { return compute_major >= 9 ? 8 : 2; }

/// Those that it has at least, by the same rule.
constexpr u32 share_least(int compute_major) {
  return compute_major == 8 ? 4 : share_granule(compute_major);
}

/// Those of part `part` (from 1 on) of `parts` equal ones; 0 where there are not enough of them.
constexpr u32 share_processors(u32 processors, int compute_major, u32 part, u32 parts) {
  const u32 granule = share_granule(compute_major);
  const u32 each = processors / parts / granule * granule;
  if (each < share_least(compute_major)) return 0;
  return part < parts ? each : processors - (parts - 1) * each;
}

}  // namespace crenel::backend::cuda
