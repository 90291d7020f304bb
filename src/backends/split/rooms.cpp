#include "backends/split/rooms.h"

#include <algorithm>
#include <list>
#include <optional>

#include "backends/split/stream.h"
#include "crenel/core/error.h"
#include "crenel/device/account.h"

namespace crenel::backend::split {
namespace {

// An exchange of more is far longer than its meetings, and its memory is better shared.
constexpr std::size_t kMost = std::size_t(32) << 20;

}  // namespace

// What fails leaves all as it was.
const Rooms::Room* Rooms::next(std::size_t bytes, std::size_t bytes_after) {
  if (stream_.exchanges_by() == device::ExchangeBy::events) return nullptr;
  const bool fits = bytes <= kMost;
  const std::size_t needed = std::max(fits ? bytes : 0, bytes_after);
  if ((fits || needed != 0) && (bytes_ < needed || words_.empty())) {
    Room memory[2], meeting;
    std::vector<void*> words;
    for (u32 p = 0; p < stream_.count(); ++p) {
      device::Stream& part = stream_.part(p);
      for (Room& room : memory) room.push_back(part.allocate(needed));
      if (!words_.empty()) continue;
      words.push_back(meeting.emplace_back(part.allocate(device::kMeetingBytes)).data());
      part.fill_zero(words.back(), device::kMeetingBytes);
    }
    stream_.meet();  // the others store there after what used this memory before
    std::swap_ranges(memory, memory + 2, rooms_);
    bytes_ = needed;
    if (words_.empty()) meeting_ = std::move(meeting), words_ = std::move(words);
  }
  return fits ? &rooms_[turn_++ % 2] : nullptr;
}

bool Exchange::can_go_beside(const SplitStream& stream, const Gathered& what) {
  return what.bytes() <= kMost && stream.exchanges_by() != device::ExchangeBy::events;
}

Exchange::Exchange(SplitStream& stream, Rooms& rooms, const Gathered& what, std::size_t bytes_after)
    : Exchange(stream, rooms, std::unique_lock(rooms.mutex_), what, bytes_after) {}

Exchange::Exchange(Exchange&& before, const Gathered& what)
    : Exchange(before.stream_, before.rooms_, std::move(before.lock_), what, 0) {}

Exchange::Exchange(SplitStream& stream, Rooms& rooms, std::unique_lock<ForkMutex> lock,
                   const Gathered& what, std::size_t bytes_after)
    : stream_(stream), rooms_(rooms), lock_(std::move(lock)) {
  if (rooms.broken_)
    throw DeviceError(cat("device ", stream.device().info().name,
                          ": its parts are out of step since a launch failed on one of them"),
                      {{"device", stream.device().info().name}});
  const Rooms::Room* room = rooms.next(what.bytes(), bytes_after);
  if (room != nullptr) by_ = std::max(stream.exchanges_by(), device::ExchangeBy::kernels);
  for (u32 p = 0; p < stream.count(); ++p) {
    if (room == nullptr) own_.push_back(stream.part(p).allocate(what.bytes()));
    u32* const data = (room == nullptr ? own_[p] : (*room)[p]).as<u32>();
    views_.emplace_back(data, what.shape, what.order, ring::Domain::coeff);
  }
  if (room == nullptr) rooms_.met_inside_ = false;
}

void Exchange::spread(const std::vector<ring::PolyView<const u32>>& from, const LimbSet& users,
                      const Store& store, bool beside) {
  const u32 parts = stream_.count();
  const bool inside = by_ != device::ExchangeBy::events;
  std::vector<device::SpreadTarget> targets;
  for (u32 p = 0; p < parts; ++p)
    if (!limbs_of(p, parts, users).empty()) targets.push_back({&stream_.part(p), views_[p]});
  if (!inside) stream_.meet();  // their memory is there
  std::list<device::Stage> stages;
  for (u32 p = 0; p < parts; ++p) stages.emplace_back(stream_.part(p), stream_.stage());
  {
    // Nothing stops or is allocated here: a part that is queued waits for the others.
    const auto order = device::meeting_order();
    rooms_.broken_ = inside;
    for (u32 p = 0; p < parts; ++p) {
      if (from[p].limbs.empty() && !inside) continue;
      std::vector<u32> position;
      for (u32 l = 0; l < from[p].limbs.size(); ++l)
        position.push_back(static_cast<u32>(views_[p].limbs.find(from[p].limbs[l])));
      const device::Meeting meeting{rooms_.words_, p};
      std::optional<device::Beside> aside;
      if (beside) aside.emplace(stream_.part(p));
      if (store && !from[p].limbs.empty())
        store(p, position, targets, meeting);
      else
        device::spread(stream_.part(p), from[p], position, targets, inside ? &meeting : nullptr);
    }
    rooms_.broken_ = false;
  }
  if (!inside) stream_.meet();  // all has come
}

}  // namespace crenel::backend::split
