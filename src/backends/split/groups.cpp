// Groups of parts: polynomials whose rows all parts share go to memory whose rows groups share, and
// back; keys that operations on either read.
#include <list>
#include <optional>

#include "backends/split/stream.h"
#include "crenel/core/error.h"
#include "crenel/device/account.h"

namespace crenel::backend::split {
namespace {

using ConstView = ring::PolyView<const u32>;
using View = ring::PolyView<u32>;

// What a part has of `from` for another one, and where that keeps it.
struct Piece {
  ConstView from;
  std::vector<u32> position;
  device::SpreadTarget to;
};

// Entries of a view that are all on every part, or its group's.
struct Entries {
  u32 first = 0, count = 0;
};

Entries entries_of(const Layout& layout, u32 part, u32 batch) {
  const u32 each = batch / layout.groups;
  return {layout.group(part) * each, each};
}

// What part p of the one layout gives part q of the other.
std::optional<Piece> piece(SplitStream& stream, u32 p, u32 q, const View& to,
                           const ConstView& from) {
  const Blocks& at = stream.blocks();
  const Entries have = entries_of(at.layout(from), p, from.shape.batch);
  const Entries want = entries_of(at.layout(to), q, from.shape.batch);
  const u32 first = std::max(have.first, want.first);
  const u32 end = std::min(have.first + have.count, want.first + want.count);
  const ConstView mine = at.local(p, from);
  const View theirs = at.local(q, to);
  if (first >= end || mine.limbs.empty() || theirs.limbs.empty()) return std::nullopt;
  Piece found{mine.rows(first - have.first, end - first), {}, {}};
  bool any = false;
  for (u32 l = 0; l < mine.limbs.size(); ++l) {
    const int there = theirs.limbs.find(mine.limbs[l]);
    found.position.push_back(there < 0 ? device::kNowhere : static_cast<u32>(there));
    any = any || there >= 0;
  }
  if (!any) return std::nullopt;
  found.to = {&stream.part(q), theirs.rows(first - want.first, end - first)};
  return found;
}

}  // namespace

// A limb is at one part of every layout, so that each piece is stored once. The first meeting says
// that the memory is free, the second that all has come.
void regroup(SplitStream& stream, const View& to, const ConstView& from) {
  Rooms& rooms = stream.rooms();
  const std::lock_guard lock(rooms.mutex_);
  rooms.expect_whole();
  const u32 parts = stream.count();
  std::vector<std::vector<Piece>> pieces(parts);
  for (u32 p = 0; p < parts; ++p)
    for (u32 q = 0; q < parts; ++q)
      if (auto found = piece(stream, p, q, to, from)) pieces[p].push_back(std::move(*found));
  const bool inside = rooms.meets();
  if (!inside) rooms.met_inside_ = false;
  std::list<device::Stage> stages;
  for (u32 p = 0; p < parts; ++p) stages.emplace_back(stream.part(p), stream.stage());
  if (!inside) stream.meet();
  {
    const auto order = device::meeting_order();
    rooms.broken_ = inside;
    const ConstView nothing(nullptr, ring::PolyShape{}, LimbSet(), to.domain);
    const auto store = [&](u32 p, const Piece* one, bool last) {
      const device::Meeting meeting{rooms.words_, p};
      const device::Meeting* const meets = inside && last ? &meeting : nullptr;
      if (one != nullptr)
        device::spread(stream.part(p), one->from, one->position, std::span(&one->to, 1), meets);
      else if (meets != nullptr)
        device::spread(stream.part(p), nothing, {}, {}, meets);
    };
    for (u32 p = 0; p < parts; ++p) store(p, nullptr, true);
    for (u32 p = 0; p < parts; ++p) {
      for (const Piece& one : pieces[p]) store(p, &one, &one == &pieces[p].back());
      if (pieces[p].empty()) store(p, nullptr, true);
    }
    rooms.broken_ = false;
  }
  if (!inside) stream.meet();
}

u32 SplitStream::groups() const { return groups_of(count()); }

// By the parts' copies, limb by limb: keys are made once.
device::Buffer SplitStream::share(const void* limbs) {
  const Block& own = *blocks_->find(limbs).block;
  const u64 rows = own.group_rows();
  const Layout groups{count(), this->groups()};
  std::vector<device::Buffer> memory;
  std::size_t bytes = 0;
  for (u32 p = 0; p < count(); ++p) {
    const LimbSet mine = groups.limbs(p, own.limbs());
    memory.push_back(
        mine.empty() ? device::Buffer()
                     : parts_[p]->allocate_limbs(
                           mine, {.rows = rows, .limb_bytes = own.limb_bytes(), .exact = true}));
    bytes += memory.back().bytes();
  }
  void* data = blocks_->add(
      Block::shared(groups.groups, own.limbs(), rows, own.limb_bytes(), std::move(memory)));
  count_taken(bytes);
  device::Buffer buffer(shared_from_this(), data, bytes, bytes, false);
  const Block& all = *blocks_->find(data).block;
  for (u32 p = 0; p < count(); ++p) {
    const LimbSet kept = all.kept(p);
    for (u64 row = 0; row < rows; ++row)
      for (u32 i = 0; i < kept.size(); ++i) {
        const u32 position = static_cast<u32>(own.limbs().find(kept[i]));
        const u32 from = own.part(row, position);
        u8* const to = all.limb(p, row, 0) + i * own.limb_bytes();
        const u8* const source = own.limb(from, row, position);
        if (from == p)
          parts_[p]->copy(to, source, own.limb_bytes());
        else
          device::copy_across(*parts_[p], to, *parts_[from], source, own.limb_bytes());
      }
  }
  return buffer;
}

void SplitStream::regroup(const View& to, const ConstView& from) {
  if (!(to.shape == from.shape && to.limbs == from.limbs && to.domain == from.domain))
    throw StateError("polynomials of another shape than those that they are dealt out from");
  split::regroup(*this, to, from);
}

}  // namespace crenel::backend::split
