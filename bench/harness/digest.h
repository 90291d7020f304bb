// SHA-256 of results: equal bits have equal digests.
#pragma once

#include <span>
#include <string>

#include "crenel/core/types.h"

namespace crenel::bench {

/// In lower-case hexadecimal digits.
std::string digest(std::span<const u8> bytes);

}  // namespace crenel::bench
