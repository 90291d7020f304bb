#include "harness/digest.h"

#include "core/sha256.h"

namespace crenel::bench {

std::string digest(std::span<const u8> bytes) { return hex(sha256(bytes)); }

}  // namespace crenel::bench
