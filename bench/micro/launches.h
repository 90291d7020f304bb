// Launches of an account as JSON, for programs that run under a profiler.
#pragma once

#include <string>
#include <vector>

#include "crenel/device/account.h"
#include "harness/json.h"

namespace crenel::bench {

inline Json::Array to_json(const std::vector<device::LaunchRecord>& records) {
  Json::Array out;
  for (const auto& r : records)
    out.push_back(Json::Object{{"kernel", std::string(r.kernel)},
                               {"work", device::name_of(r.work)},
                               {"stage", r.stage},
                               {"limbs", r.limbs},
                               {"polys", r.polys},
                               {"read_bytes", r.read_bytes},
                               {"written_bytes", r.written_bytes},
                               {"streamed_bytes", r.streamed_bytes},
                               {"multiply_adds", r.multiply_adds},
                               {"butterflies", r.butterflies}});
  return out;
}

}  // namespace crenel::bench
