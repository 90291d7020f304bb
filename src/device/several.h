// What a backend with more than one device offers beside backend.h.
#pragma once

#include "crenel/device/link.h"
#include "device/backend.h"

namespace crenel::device {

/// Model number `index` of a GPU, "cuda:dry:<index>": its own memory, and a link to each other one.
std::shared_ptr<Backend> make_dry_cuda_device(int index);
/// road_between() of two devices of CUDA.
Road cuda_road(const Device& from, const Device& to);
/// copy_across() of two streams of CUDA, `bytes` at least 1.
void cuda_copy_across(Stream& to, void* target, Stream& from, const void* source,
                      std::size_t bytes);

}  // namespace crenel::device
