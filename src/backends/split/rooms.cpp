#include "backends/split/rooms.h"

#include <algorithm>
#include <list>

#include "backends/split/stream.h"
#include "crenel/core/error.h"
#include "crenel/device/account.h"

namespace crenel::backend::split {
namespace {

// An exchange of more is far longer than its meetings, and its memory is better shared.
constexpr std::size_t kMost = std::size_t(32) << 20;

std::size_t bytes_of(const ring::PolyShape& shape, const LimbSet& limbs) {
  return u64(shape.polys()) * limbs.size() * sizeof(u32) << shape.log_n;
}

}  // namespace

// What fails leaves all as it was.
const Rooms::Room* Rooms::next(std::size_t bytes) {
  if (bytes > kMost || stream_.exchanges_by() == device::ExchangeBy::events) return nullptr;
  if (bytes_ < bytes || words_.empty()) {
    Room memory[2], meeting;
    std::vector<void*> words;
    for (u32 p = 0; p < stream_.count(); ++p) {
      device::Stream& part = stream_.part(p);
      for (Room& room : memory) room.push_back(part.allocate(bytes));
      if (!words_.empty()) continue;
      words.push_back(meeting.emplace_back(part.allocate(device::kMeetingBytes)).data());
      part.fill_zero(words.back(), device::kMeetingBytes);
    }
    stream_.meet();  // the others store there after what used this memory before
    std::swap_ranges(memory, memory + 2, rooms_);
    bytes_ = bytes;
    if (words_.empty()) meeting_ = std::move(meeting), words_ = std::move(words);
  }
  return &rooms_[turn_++ % 2];
}

bool Rooms::meets() {
  if (stream_.exchanges_by() == device::ExchangeBy::events) return false;
  return !words_.empty() || next(std::max<std::size_t>(bytes_, 1)) != nullptr;
}

void Rooms::expect_whole() const {
  if (broken_)
    throw DeviceError(cat("device ", stream_.device().info().name,
                          ": its parts are out of step since a launch failed on one of them"),
                      {{"device", stream_.device().info().name}});
}

Exchange::Exchange(SplitStream& stream, Rooms& rooms, const Layout& layout, ring::PolyShape shape,
                   const LimbSet& order)
    : stream_(stream), rooms_(rooms), layout_(layout), lock_(rooms.mutex_) {
  rooms.expect_whole();
  shape.batch /= layout.groups;
  const std::size_t bytes = bytes_of(shape, order);
  const Rooms::Room* room = rooms.next(bytes);
  if (room != nullptr) by_ = std::max(stream.exchanges_by(), device::ExchangeBy::kernels);
  for (u32 p = 0; p < stream.count(); ++p) {
    if (room == nullptr) own_.push_back(stream.part(p).allocate(bytes));
    u32* const data = (room == nullptr ? own_[p] : (*room)[p]).as<u32>();
    views_.emplace_back(data, shape, order, ring::Domain::coeff);
  }
  if (room == nullptr) rooms_.met_inside_ = false;
}

void Exchange::spread(const std::vector<ring::PolyView<const u32>>& from, const LimbSet& users,
                      const Store& store) {
  const u32 parts = stream_.count();
  const bool inside = by_ != device::ExchangeBy::events;
  // Its own memory, then the next part's: if all began with the first part's, its links would be
  // full and the others' idle.
  std::vector<std::vector<device::SpreadTarget>> targets(parts);
  for (u32 p = 0; p < parts; ++p)
    for (u32 k = 0, members = layout_.members(); k < members; ++k) {
      const u32 q = layout_.group(p) * members + (p + k) % members;
      if (!layout_.limbs(q, users).empty()) targets[p].push_back({&stream_.part(q), views_[q]});
    }
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
      if (store && !from[p].limbs.empty())
        store(p, position, targets[p], meeting);
      else
        device::spread(stream_.part(p), from[p], position, targets[p], inside ? &meeting : nullptr);
    }
    rooms_.broken_ = false;
  }
  if (!inside) stream_.meet();  // all has come
}

}  // namespace crenel::backend::split
