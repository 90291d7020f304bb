// The words of a request for a batch: how many of its vectors fit.
#pragma once

#include "ckks/objects.h"
#include "device/room.h"

namespace crenel::ckks {

/// `bytes`: of the whole batch, host and device together.
inline core::MemoryRequest batch_request(const char* operation, u32 batch, u64 bytes) {
  return {.what = cat(operation, " of ", batch, batch == 1 ? " vector" : " vectors"),
          .count = batch,
          .each = bytes / batch,
          .units = "vectors",
          .advice = "take smaller batches, or free what is not needed"};
}

}  // namespace crenel::ckks
