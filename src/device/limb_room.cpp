#include "device/limb_room.h"

#include <algorithm>

#include "crenel/core/error.h"
#include "device/several.h"

namespace crenel::device {

std::size_t room_bytes(const Stream& stream, std::span<const LimbShape> shapes) {
  if (const auto* divided = dynamic_cast<const DividedStream*>(&stream))
    return divided->room_bytes(shapes);
  std::size_t most = 0;
  for (const LimbShape& shape : shapes) most = std::max(most, shape.bytes());
  return most;
}

Buffer allocate_room(Stream& stream, std::span<const LimbShape> shapes) {
  if (auto* divided = dynamic_cast<DividedStream*>(&stream)) return divided->allocate_room(shapes);
  return stream.allocate_exact(room_bytes(stream, shapes));
}

void reshape(Stream& stream, const Buffer& room, const LimbShape& shape) {
  if (auto* divided = dynamic_cast<DividedStream*>(&stream)) return divided->reshape(room, shape);
  if (shape.bytes() > room.bytes())
    throw StateError(cat("limbs of ", shape.bytes(), " bytes in memory of ", room.bytes()),
                     {{"bytes", shape.bytes()}, {"expected", room.bytes()}});
}

}  // namespace crenel::device
