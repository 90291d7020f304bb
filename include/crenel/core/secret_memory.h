// How well the secrets in this process's memory are kept.
#pragma once

#include "crenel/core/types.h"

namespace crenel {

/// Pages of host memory that hold secrets: keys, seeds, errors, what decryptions pass through.
/// Device memory of a GPU is not in it.
struct SecretMemory {
  u64 bytes = 0;           ///< in use
  u64 idle_bytes = 0;      ///< wiped, kept for reuse
  u64 locked_bytes = 0;    ///< of both: never written to swap
  u64 unlocked_bytes = 0;  ///< of both: beyond what this process may lock (RLIMIT_MEMLOCK)
  u64 dumpable_bytes = 0;  ///< of both: the system refused to leave them out of core dumps
  u64 lock_limit = 0;      ///< RLIMIT_MEMLOCK now; 2^64 - 1: none
};

/// Of this process, now.
SecretMemory secret_memory();

}  // namespace crenel
