// Device memory that polynomials of one shape have after those of another: frames for keys that
// come and go (rlwe/staged_keys.h).
#pragma once

#include <span>

#include "crenel/device/device.h"
#include "rns/limb_set.h"

namespace crenel::device {

/// What memory of polynomials is for: `rows` rows of all `limbs`, one after the other.
struct LimbShape {
  rns::LimbSet limbs;
  u64 rows = 1;
  std::size_t limb_bytes = 0;  ///< of one limb

  std::size_t bytes() const { return rows * limbs.size() * limb_bytes; }
};

/// Memory for polynomials of any of `shapes`, one after the other, for as long as reshape() says.
/// Until then it has none. On a device of several parts each has room for its limbs of every shape,
/// which together may be more bytes than the largest shape has.
Buffer allocate_room(Stream& stream, std::span<const LimbShape> shapes);
/// What allocate_room() takes.
std::size_t room_bytes(const Stream& stream, std::span<const LimbShape> shapes);
/// The limbs of this shape lie in `room` from now on; what it held is lost. The caller has seen to
/// it that no work that is queued later has views of it. StateError where there is no room.
void reshape(Stream& stream, const Buffer& room, const LimbShape& shape);

}  // namespace crenel::device
