// What a backend with more than one device offers beside backend.h.
#pragma once

#include <functional>

#include "crenel/device/link.h"
#include "device/backend.h"
#include "device/limb_room.h"

namespace crenel::device {

/// A stream whose memory lies on several devices.
class DividedStream : public Stream {
 public:
  using Stream::Stream;
  /// The streams of the parts.
  virtual std::vector<std::shared_ptr<Stream>> parts() const = 0;
  /// (stream of the part, address there, bytes before it, bytes)
  using Piece = std::function<void(Stream&, void*, std::size_t, std::size_t)>;
  /// f for the pieces of a stretch of memory, in order; of what all parts have, for every copy
  /// where `all`, otherwise for one.
  virtual void for_pieces(const void* address, std::size_t bytes, bool all, const Piece& f) = 0;

  /// As the functions of these names (limb_room.h).
  virtual std::size_t room_bytes(std::span<const LimbShape> shapes) const = 0;
  virtual Buffer allocate_room(std::span<const LimbShape> shapes) = 0;
  virtual void reshape(const Buffer& room, const LimbShape& shape) = 0;
};

/// One device of several ("cuda:0+1"), two or more of one kind and model (DeviceError otherwise).
std::shared_ptr<Backend> make_split_device(const std::string& name,
                                           std::vector<std::shared_ptr<Device>> parts);

/// Where limbs go: to a view of the limbs `from` and others.
struct SpreadTarget {
  Stream* stream;
  PolyView<u32> to;
};
/// Limb i of `from` to the limb at `position[i]` of every target, of the same components and batch.
/// Queued on `from`, and on nothing else: who calls has made it wait for what was queued on the
/// targets before, and makes them wait for it. Devices of one kind. Stated to the accounts of the
/// targets as "copy_within", "copy_peer" or "copy_host".
void spread(Stream& stream, const PolyView<const u32>& from, std::span<const u32> position,
            std::span<const SpreadTarget> targets);
/// spread() of streams of CUDA.
void cuda_spread(Stream& stream, const PolyView<const u32>& from, std::span<const u32> position,
                 std::span<const SpreadTarget> targets);

/// Model number `index` of a GPU, "cuda:dry:<index>": its own memory, and a link to each other one.
std::shared_ptr<Backend> make_dry_cuda_device(int index);
/// road_between() of two devices of CUDA.
Road cuda_road(const Device& from, const Device& to);
/// copy_across() of two streams of CUDA, `bytes` at least 1.
void cuda_copy_across(Stream& to, void* target, Stream& from, const void* source,
                      std::size_t bytes);

}  // namespace crenel::device
