// Requests for memory, and the words of their refusal.
#pragma once

#include <string>

#include "crenel/core/error.h"
#include "crenel/core/host_memory.h"
#include "crenel/core/types.h"

namespace crenel::core {

/// Requests below this are not compared with anything: asking costs about 0.2 ms, and what
/// is short of so little fails otherwise.
inline constexpr u64 kAskedFrom = u64{64} << 20;

/// One request, in the words of its error.
struct MemoryRequest {
  std::string what{};    ///< "400 evaluation keys"
  u64 bytes = 0;         ///< all of it
  u64 count = 0;         ///< of equal things in it; 0: it is no such request
  u64 each = 0;          ///< bytes of one of them
  std::string units{};   ///< "keys"
  std::string advice{};  ///< what to do: "ask for fewer rotations, ..."
};

/// "47.3 GiB", "512 bytes".
std::string human_bytes(u64 bytes);
/// "400 evaluation keys: 47.3 GiB, cuda:0 has 31.0 GiB available (limit): 262 of these keys fit;
/// advice".
OutOfMemoryError out_of_memory(const MemoryRequest& request, u64 available,
                               const std::string& limit, const std::string& device);
/// Of host memory that was not given: what there is, is asked here.
OutOfMemoryError out_of_host_memory(const MemoryRequest& request);
/// OutOfMemoryError where the host has less than the request.
void ask_host(const MemoryRequest& request);

/// ask_host() for what is large; `describe()` gives the request's words.
template <class Describe>
void expect_host_room(u64 bytes, Describe describe) {
  if (bytes < kAskedFrom) return;
  MemoryRequest request = describe();
  request.bytes = bytes;
  ask_host(request);
}

}  // namespace crenel::core
