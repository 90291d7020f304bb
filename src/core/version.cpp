#include "crenel/core/version.h"

namespace crenel {

const char* version() noexcept { return CRENEL_VERSION; }

}  // namespace crenel
