// Timing of single calls by the device's own clock: how libraries for GPUs publish their figures.
#pragma once

#include "crenel/device/device.h"
#include "harness/timer.h"

namespace crenel::bench {

/// Whether calls queued on this stream can be timed so: those of a GPU.
bool has_event_timer(device::Stream& stream);

/// Seconds between an event before and an event after each call, after warm-up. Calls are queued
/// behind other work, so that the device and not the host sets the pace. Until the spread is small,
/// at least 60 calls. StateError without an event timer.
Timing measure_each(const std::function<void()>& call, device::Stream& stream,
                    const Budget& budget);

}  // namespace crenel::bench
