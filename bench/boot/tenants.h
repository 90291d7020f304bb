// Several clients on one context, and keys that do not fit the device.
#pragma once

#include "boot/world.h"

namespace crenel::bench {

/// Bootstraps by one client's keys against bootstraps by `options.tenants` clients' keys in turn,
/// with one bootstrapper; and what a further client takes of the device's memory.
void measure_tenants(BootWorld& world, Recorder& recorder, std::mt19937_64& rng);

/// Bootstraps of batches 1, 8 and 32 with keys staged within each of `options.resident` mebibytes
/// of device memory, against keys that are all there.
void measure_staged(BootWorld& world, Recorder& recorder, std::mt19937_64& rng);

}  // namespace crenel::bench
