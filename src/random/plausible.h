// Whether imported secrets can be what the samplers draw.
#pragma once

#include "crenel/core/types.h"

namespace crenel::random {

/// Whether `count` successes in `trials` independent trials of this probability, in (0, 1), are
/// credible: false where a count as far from the mean on its side has a probability below 2^-64,
/// by the bound exp(-n D(count / n || p)) of Chernoff and Hoeffding, D the relative entropy. Fewer
/// than 64 trials or so exclude little.
bool plausible_count(u64 count, u64 trials, double probability);

}  // namespace crenel::random
