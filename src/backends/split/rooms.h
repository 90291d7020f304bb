// Where gathered limbs lie, so that an exchange needs one meeting.
#pragma once

#include <functional>
#include <mutex>
#include <span>

#include "backends/split/blocks.h"
#include "device/several.h"

namespace crenel::backend::split {

class SplitStream;
/// One at a time, as exchanges are (SplitStream::regroup()).
void regroup(SplitStream& stream, const ring::PolyView<u32>& to,
             const ring::PolyView<const u32>& from);

/// Two rooms in the memory of every part, which exchanges use in turn. A part stores into a room of
/// another after the meeting of the exchange before, and the other came to that meeting after it
/// had read what the room held: nobody asks whether a room is free.
///
/// Of one stream or one recording: its turns follow one another on every part.
class Rooms {
 public:
  explicit Rooms(SplitStream& stream) : stream_(stream) {}

  /// Whether all exchanges so far met inside kernels.
  bool met_inside() const { return met_inside_; }

 private:
  friend class Exchange;
  friend void regroup(SplitStream&, const ring::PolyView<u32>&, const ring::PolyView<const u32>&);
  using Room = std::vector<device::Buffer>;  ///< by part
  /// The next room, of at least so many bytes; null where exchanges of this size use other memory.
  const Room* next(std::size_t bytes);
  /// The words to meet with are there, or not where parts meet by events.
  bool meets();
  void expect_whole() const;

  SplitStream& stream_;
  ForkMutex mutex_;  ///< of one exchange at a time, from its memory to who reads it
  Room rooms_[2];
  std::size_t bytes_ = 0;  ///< of each: a recording begins with either
  u32 turn_ = 0;
  std::vector<device::Buffer> meeting_;  ///< words of each part
  std::vector<void*> words_;
  bool met_inside_ = true;
  bool broken_ = false;  ///< some parts were queued for a meeting and others not
};

/// Limbs of all parts on every part. While it lives nobody else gathers, and what was gathered
/// stays as it is; those who read it are queued by then.
class Exchange {
 public:
  /// `rooms`: used unless an exchange of this size has memory of its own.
  /// `layout`: of what is gathered, whose limbs stay in their group; `shape`: of all entries.
  Exchange(SplitStream& stream, Rooms& rooms, const Layout& layout, ring::PolyShape shape,
           const LimbSet& order);
  /// Whether transforms may store to the parts: `store` of spread() is called.
  bool by_transforms() const { return by_ == device::ExchangeBy::transforms; }
  /// What stores the limbs of a part, queued with what it is given.
  using Store = std::function<void(u32 part, std::span<const u32> position,
                                   std::span<const device::SpreadTarget>, const device::Meeting&)>;
  /// Of each part its limbs of `order`, some or none, to the parts of its group that keep some of
  /// `users`; then all meet. By `store`, where there is one, for parts that have some.
  void spread(const std::vector<ring::PolyView<const u32>>& from, const LimbSet& users,
              const Store& store);
  /// What a part has gathered.
  const ring::PolyView<u32>& operator[](u32 part) const { return views_[part]; }

 private:
  SplitStream& stream_;
  Rooms& rooms_;
  Layout layout_;
  std::unique_lock<ForkMutex> lock_;
  std::vector<device::Buffer> own_;  ///< where it is not a room
  std::vector<ring::PolyView<u32>> views_;
  device::ExchangeBy by_ = device::ExchangeBy::events;
};

}  // namespace crenel::backend::split
