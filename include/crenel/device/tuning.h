// Numbers that the launches of a GPU go by: into what its work is divided. They change how long
// things take and no bit of a result. Some defaults are derived from the GPU, others were measured
// on an H200 or an H100 (docs/guide/tuning.md); `crenel tune` finds better ones for the GPU at
// hand.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "crenel/device/device.h"

namespace crenel::device {

/// Numbers that launches go by; info_of() says what each means.
enum class Tunable : u8 {
  part_bytes,          ///< see info_of()
  row_polys,           ///< ...
  row_blocks,          ///< ...
  conversion_start,    ///< ...
  conversion_outputs,  ///< ...
  sums_walk,           ///< ...
  folded_matrices,     ///< ...
  conversion_early,    ///< ...
  conversion_granule,  ///< ...
  conversion_pairs,    ///< ...
  passes_early,        ///< ...
  discard_read,        ///< ...
  switch_rows,         ///< ...
  switch_blocks,       ///< ...
};
inline constexpr u32 kTunables = u32(Tunable::switch_blocks) + 1;

/// What a number is called, means and may be.
struct TunableInfo {
  const char* name;     ///< "part_bytes", ...
  const char* meaning;  ///< in one line
  u64 least, most;      ///< what it may be
};
/// What is known of one; lives as long as the library.
const TunableInfo& info_of(Tunable tunable);
/// ParameterError, naming the known ones, for another name.
Tunable tunable_of(const std::string& name);

/// A number for each Tunable, in their order.
using Tuning = std::array<u64, kTunables>;

/// What launches of this device that are queued from now on go by; of a device of several parts
/// what all of them go by. UnsupportedError for a device whose work is not divided by such numbers,
/// any but CUDA's; StateError, naming it, where parts differ in a number.
Tuning tuning(const Device& device);
/// What it began with; errors as above.
Tuning default_tuning(const Device& device);
/// Of a device of several parts: of each. From any thread; what is being queued meanwhile may go by
/// either, and recorded graphs keep what they were recorded with. ParameterError, naming it and
/// what it may be, for a number out of range, which leaves all as they were; UnsupportedError as
/// above.
void set_tuning(Device& device, const Tuning& wanted);

}  // namespace crenel::device
