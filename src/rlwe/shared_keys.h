// Keys for batches whose entries lie on different parts of a device (device/apart.h).
#pragma once

#include "rlwe/keys.h"

namespace crenel::rlwe {

/// Relinearisation keys of a set with keys of encapsulation get what groups of parts need of them:
/// EvalMod's halves are relinearised side by side. Nothing on devices without groups, or without
/// device::Optimisation::entries_apart.
void share_between_groups(EvaluationKeySet& set);

}  // namespace crenel::rlwe
