// What fork() leaves of this process, for whatever a child must not take over.
#pragma once

#include "crenel/core/types.h"

namespace crenel::core {

/// Forks between the process that loaded the library and this one.
u64 forks() noexcept;

/// Whether loops may run on OpenMP's threads here. Not in the thread that a fork left over: its
/// team is gone, and OpenMP would wait for it for ever. Threads that are started in the child have
/// teams of their own.
bool may_use_team() noexcept;

}  // namespace crenel::core
