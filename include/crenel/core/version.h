// The version of the library.
#pragma once

namespace crenel {

/// Semantic version of the library, e.g. "0.1.0".
const char* version() noexcept;

}  // namespace crenel
