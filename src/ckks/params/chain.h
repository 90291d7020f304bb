// The chain of a parameter set as key switching sees it.
#pragma once

#include "crenel/ckks/params.h"
#include "rlwe/ring_context.h"

namespace crenel::ckks {

rlwe::Chain chain_of(const Params& params);

}  // namespace crenel::ckks
