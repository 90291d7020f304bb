#include "backends/split/stream.h"

#include <algorithm>

#include "backends/split/moves.h"
#include "crenel/core/error.h"

namespace crenel::backend::split {
namespace {

using device::Buffer;
using device::Event;
using device::Stream;

// One point of every part.
class SplitEvent final : public Event {
 public:
  explicit SplitEvent(std::vector<std::shared_ptr<Event>> events) : events_(std::move(events)) {}
  void synchronize() override {
    for (const auto& event : events_)
      if (event) event->synchronize();
  }
  const std::vector<std::shared_ptr<Event>>& events() const { return events_; }

 private:
  std::vector<std::shared_ptr<Event>> events_;
};

// A graph of each part, or one of all of them.
class SplitGraph final : public device::GraphExec {
 public:
  SplitGraph(std::vector<std::unique_ptr<device::GraphExec>> graphs, std::unique_ptr<Rooms> rooms)
      : rooms_(std::move(rooms)), graphs_(std::move(graphs)) {}

  void launch(Stream& stream) override {
    SplitStream& split = split_stream(stream);
    if (broken_)
      throw DeviceError(cat("device ", stream.device().info().name,
                            ": a launch of this recording failed on some of its parts only"),
                        {{"device", stream.device().info().name}});
    split.meet();  // the rooms are free
    const auto order = device::meeting_order();
    broken_ = true;
    for (u32 g = 0; g < graphs_.size(); ++g) graphs_[g]->launch(split.part(g));
    if (graphs_.size() == 1)
      for (u32 p = 1; p < split.count(); ++p) split.part(p).wait_for(split.part(0));
    broken_ = false;
  }

 private:
  std::unique_ptr<Rooms> rooms_;  ///< null where nothing was gathered
  std::vector<std::unique_ptr<device::GraphExec>> graphs_;
  bool broken_ = false;
};

}  // namespace

SplitStream& split_stream(Stream& stream) {
  if (auto* split = dynamic_cast<SplitStream*>(&stream)) return *split;
  throw StateError(
      cat("stream of device ", stream.device().info().name, ", expected one of several parts"));
}

SplitStream::SplitStream(std::shared_ptr<device::Device> device, std::shared_ptr<Blocks> blocks,
                         std::vector<std::shared_ptr<Stream>> parts)
    : DividedStream(std::move(device)),
      blocks_(std::move(blocks)),
      parts_(std::move(parts)),
      can_meet_(device::can_meet(parts_)) {}

SplitStream::~SplitStream() { release_pool(); }

void SplitStream::meet() {
  const auto order = device::meeting_order();
  std::vector<std::shared_ptr<Event>> marks;
  for (const auto& part : parts_) marks.push_back(part->mark());
  for (u32 p = 0; p < count(); ++p)
    for (u32 other = 0; other < count(); ++other)
      if (other != p) parts_[p]->wait_for(marks[other]);
}

device::ExchangeBy SplitStream::exchanges_by() const {
  if (!can_meet_) return device::ExchangeBy::events;
  return static_cast<const device::DividedDevice&>(*shared_device()).exchanges_by();
}

Rooms& SplitStream::rooms() {
  if (!capturing()) return rooms_;
  if (!recorded_rooms_) recorded_rooms_ = std::make_unique<Rooms>(*this);
  return *recorded_rooms_;
}

std::vector<Stream*> SplitStream::recorded_streams() {
  std::vector<Stream*> streams{this};
  for (const auto& part : parts_) streams.push_back(part.get());
  return streams;
}

std::unique_ptr<device::GraphExec> SplitStream::record(const std::function<void()>& work) {
  const bool each = recorded_rooms_ == nullptr || recorded_rooms_->met_inside();
  auto graphs = device::record_together(parts_, each, work);
  if (graphs.empty()) return Stream::record(work);
  return std::make_unique<SplitGraph>(std::move(graphs), std::move(recorded_rooms_));
}

void SplitStream::synchronize() {
  expect_no_recording("synchronize");
  for (const auto& part : parts_) part->synchronize();
}

void SplitStream::for_pieces(const void* address, std::size_t bytes, bool all, const Piece& f) {
  if (bytes == 0) return;
  const Place first = blocks_->find(address);
  const Block& block = *first.block;
  if (first.offset + bytes > block.bytes())
    throw StateError(cat(bytes, " bytes, expected at most the ", block.bytes() - first.offset,
                         " up to the end of the memory"));
  if (block.flat()) {
    for (u32 p = 0; p < (all ? count() : 1); ++p)
      f(*parts_[p], block.flat(p, first.offset), 0, bytes);
    return;
  }
  if (all && block.shared_by() > 1)
    throw StateError("a copy to limbs that several groups of parts have");
  for (std::size_t done = 0; done < bytes;) {
    const u64 offset = first.offset + done, in_row = offset % block.row_bytes();
    const u32 position = static_cast<u32>(in_row / block.limb_bytes());
    const u64 row = offset / block.row_bytes(), rest = in_row % block.limb_bytes();
    const std::size_t size = std::min<u64>(bytes - done, block.limb_bytes() - rest);
    const u32 p = block.part(row, position);
    f(*parts_[p], block.limb(p, row, position) + rest, done, size);
    done += size;
  }
}

void SplitStream::copy_in(void* to, const void* from, std::size_t bytes) {
  for_pieces(to, bytes, true, [&](Stream& part, void* there, std::size_t at, std::size_t size) {
    part.copy_in(there, static_cast<const u8*>(from) + at, size);
  });
}

void SplitStream::copy_in_secret(void* to, const void* from, std::size_t bytes) {
  for_pieces(to, bytes, true, [&](Stream& part, void* there, std::size_t at, std::size_t size) {
    part.copy_in_secret(there, static_cast<const u8*>(from) + at, size);
  });
}

void SplitStream::upload(void* to, const void* from, std::size_t bytes) {
  for_pieces(to, bytes, true, [&](Stream& part, void* there, std::size_t at, std::size_t size) {
    part.upload(there, static_cast<const u8*>(from) + at, size);
  });
}

// Every part follows addresses of its own memory: those of the first limbs that it has.
void SplitStream::upload_addresses(void* to, const void* const* from, std::size_t count) {
  std::vector<const void*> own(count);
  for (u32 p = 0; p < this->count(); ++p) {
    for (std::size_t i = 0; i < count; ++i) {
      own[i] = nullptr;
      if (from[i] == nullptr) continue;
      const Place place = blocks_->find(from[i]);
      own[i] = place.block->flat() ? place.block->flat(p, place.offset)
                                   : place.block->limb(p, place.row, place.position);
    }
    parts_[p]->copy_in(blocks_->flat(p, to), static_cast<const void*>(own.data()),
                       count * sizeof(own[0]));
  }
}

void SplitStream::copy_out(void* to, const void* from, std::size_t bytes) {
  for_pieces(from, bytes, false, [&](Stream& part, void* there, std::size_t at, std::size_t size) {
    part.copy_out(static_cast<u8*>(to) + at, there, size);
  });
}

void SplitStream::copy_out_secret(void* to, const void* from, std::size_t bytes) {
  for_pieces(from, bytes, false, [&](Stream& part, void* there, std::size_t at, std::size_t size) {
    part.copy_out_secret(static_cast<u8*>(to) + at, there, size);
  });
}

void SplitStream::copy(void* to, const void* from, std::size_t bytes) {
  copy_rows(to, bytes, from, bytes, bytes, 1);
}

void SplitStream::copy_rows(void* to, std::size_t to_pitch, const void* from,
                            std::size_t from_pitch, std::size_t row_bytes, std::size_t rows) {
  const auto moves = moves_of(*blocks_, to, to_pitch, from, from_pitch, row_bytes, rows);
  for (u32 p = 0; p < count(); ++p)
    for (const Move& m : moves[p])
      if (m.rows == 1)
        parts_[p]->copy(m.to, m.from, m.row_bytes);
      else
        parts_[p]->copy_rows(m.to, m.to_pitch, m.from, m.from_pitch, m.row_bytes, m.rows);
}

void SplitStream::fill_zero(void* data, std::size_t bytes) {
  struct Run {
    u8* data = nullptr;
    std::size_t bytes = 0;
  };
  std::map<Stream*, std::vector<Run>> runs;  // limbs that follow one another on a part are one
  for_pieces(data, bytes, true, [&](Stream& part, void* there, std::size_t, std::size_t size) {
    auto& of_part = runs[&part];
    if (!of_part.empty() && of_part.back().data + of_part.back().bytes == there)
      of_part.back().bytes += size;
    else
      of_part.push_back({static_cast<u8*>(there), size});
  });
  for (const auto& [part, of_part] : runs)
    for (const Run& run : of_part) part->fill_zero(run.data, run.bytes);
}

void SplitStream::wait_for(Stream& other) {
  const auto order = device::meeting_order();
  auto* split = dynamic_cast<SplitStream*>(&other);
  for (u32 p = 0; p < count(); ++p)
    if (split != nullptr && split->count() == count())
      parts_[p]->wait_for(split->part(p));
    else
      for (const auto& there :
           split != nullptr ? split->parts_ : std::vector{other.shared_from_this()})
        parts_[p]->wait_for(*there);
}

std::shared_ptr<Event> SplitStream::mark() {
  const auto order = device::meeting_order();
  std::vector<std::shared_ptr<Event>> events;
  for (const auto& part : parts_) events.push_back(part->mark());
  return std::make_shared<SplitEvent>(std::move(events));
}

void SplitStream::wait_for(const std::shared_ptr<Event>& event) {
  if (!event) return;
  const auto order = device::meeting_order();
  const auto& events = static_cast<const SplitEvent&>(*event).events();
  for (u32 p = 0; p < count(); ++p) parts_[p]->wait_for(events[p]);
}

Buffer SplitStream::flat(std::size_t bytes, bool secret, bool exact) {
  std::vector<Buffer> memory;
  for (const auto& part : parts_)
    memory.push_back(exact ? part->allocate_exact(bytes) : part->allocate(bytes, secret));
  void* data = blocks_->add(Block(bytes, std::move(memory)));
  count_taken(bytes);
  return Buffer(shared_from_this(), data, bytes, bytes, secret);
}

Buffer SplitStream::allocate(std::size_t bytes, bool secret) { return flat(bytes, secret, false); }
Buffer SplitStream::allocate_exact(std::size_t bytes) { return flat(bytes, false, true); }

Buffer SplitStream::allocate_limbs(const LimbSet& limbs, const LimbRows& of) {
  const std::size_t bytes = of.rows * limbs.size() * of.limb_bytes;
  if (bytes == 0) return flat(0, of.secret, of.exact);
  const Layout layout{count(), device::EntriesApart::on(*this) ? groups() : 1};
  if (of.rows % layout.groups != 0)
    throw StateError(cat(of.rows, " polynomials for ", layout.groups, " groups of parts"),
                     {{"polynomials", of.rows}, {"groups", layout.groups}});
  LimbRows each = of;
  each.rows /= layout.groups;
  std::vector<Buffer> memory;
  for (u32 p = 0; p < count(); ++p) {
    const LimbSet mine = layout.limbs(p, limbs);
    memory.push_back(mine.empty() ? Buffer() : parts_[p]->allocate_limbs(mine, each));
  }
  void* data = blocks_->add(Block(layout, limbs, of.rows, of.limb_bytes, std::move(memory)));
  count_taken(bytes);
  return Buffer(shared_from_this(), data, bytes, bytes, of.secret);
}

std::size_t SplitStream::room_bytes(u32 part, std::span<const device::LimbShape> shapes) const {
  std::size_t most = 0;
  for (const auto& shape : shapes)
    most = std::max<std::size_t>(
        most, shape.rows * Layout{count()}.limbs(part, shape.limbs).size() * shape.limb_bytes);
  return most;
}

std::size_t SplitStream::room_bytes(std::span<const device::LimbShape> shapes) const {
  std::size_t all = 0;
  for (u32 p = 0; p < count(); ++p) all += room_bytes(p, shapes);
  return all;
}

Buffer SplitStream::allocate_room(std::span<const device::LimbShape> shapes) {
  std::vector<Buffer> memory;
  for (u32 p = 0; p < count(); ++p) {
    const std::size_t bytes = room_bytes(p, shapes);
    memory.push_back(bytes == 0 ? Buffer() : parts_[p]->allocate_exact(bytes));
  }
  const std::size_t bytes = room_bytes(shapes);
  void* data = blocks_->add(Block::room(bytes, std::move(memory)));
  count_taken(bytes);
  return Buffer(shared_from_this(), data, bytes, bytes, false);
}

void SplitStream::reshape(const Buffer& room, const device::LimbShape& shape) {
  blocks_->reshape(room.data(), shape);
}

// What is secret the parts wipe: their buffers are secret, too.
void SplitStream::recycle(void* data, std::size_t, std::size_t capacity, bool) noexcept {
  if (!device().in_own_process()) return;
  blocks_->remove(data);
  count_given(capacity);
}

void SplitStream::trim() {
  expect_no_recording("trim");
  for (const auto& part : parts_) part->trim();
}

void SplitStream::account(std::shared_ptr<device::Account> account) {
  for (const auto& part : parts_) part->account(account);
  Stream::account(std::move(account));
}

bool SplitStream::replace_account(const device::Account* expected,
                                  std::shared_ptr<device::Account> account) {
  if (!Stream::replace_account(expected, account)) return false;
  for (const auto& part : parts_) part->account(account);
  return true;
}

}  // namespace crenel::backend::split
