#include "backends/split/blocks.h"

#include <bit>
#include <iterator>

#include "crenel/core/error.h"

namespace crenel::backend::split {
namespace {

constexpr u64 kAlignment = 256;

u64 rounded(u64 bytes) { return (bytes / kAlignment + 1) * kAlignment; }

}  // namespace

LimbSet Layout::limbs(u32 part, const LimbSet& limbs) const {
  LimbSet mine;
  for (u32 i = 0; i < limbs.size(); ++i)
    if (keeps(part, limbs[i])) mine.push_back(limbs[i]);
  return mine;
}

LimbSet Layout::by_part(const LimbSet& limbs) const {
  LimbSet order;
  for (u32 member = 0; member < members(); ++member)
    order = order.concat(this->limbs(member, limbs));
  return order;
}

Block::Block(u64 bytes, std::vector<device::Buffer> memory)
    : flat_(true), bytes_(bytes), addresses_(bytes), memory_(std::move(memory)) {}

Block::Block(const Layout& layout, const LimbSet& limbs, u64 rows, u64 limb_bytes,
             std::vector<device::Buffer> memory)
    : Block(room(rows * limbs.size() * limb_bytes, std::move(memory))) {
  layout_ = layout;
  reshape({limbs, rows, limb_bytes});
}

Block Block::shared(u32 groups, const LimbSet& limbs, u64 rows, u64 limb_bytes,
                    std::vector<device::Buffer> memory) {
  const u32 parts = static_cast<u32>(memory.size());
  Block block({parts, 1}, limbs, rows, limb_bytes, std::move(memory));
  block.shared_by_ = groups;
  for (u32 p = 0; p < parts; ++p)
    block.further_.push_back(
        Layout{parts, groups}.limbs(p, limbs).minus(block.layout_.limbs(p, limbs)));
  return block;
}

LimbSet Block::kept(u32 part) const {
  const LimbSet own = layout_.limbs(part, limbs_);
  return further_.empty() ? own : own.concat(further_[part]);
}

Block Block::room(u64 bytes, std::vector<device::Buffer> memory) {
  Block block(bytes, std::move(memory));
  block.flat_ = false;
  block.layout_ = {block.parts(), 1};
  block.bytes_ = 0;
  return block;
}

void Block::reshape(const device::LimbShape& shape) {
  if (flat_) throw StateError("limbs in memory that all parts of the device have");
  std::vector<std::vector<u8>> before;
  for (u32 p = 0; p < parts(); ++p) {
    auto& of_part = before.emplace_back(shape.limbs.size() + 1, u8(0));
    for (u32 i = 0; i < shape.limbs.size(); ++i)
      of_part[i + 1] = static_cast<u8>(of_part[i] + (layout_.keeps(p, shape.limbs[i]) ? 1 : 0));
    if (const u64 needed = shape.rows / layout_.groups * of_part.back() * shape.limb_bytes;
        needed > memory_[p].bytes())
      throw StateError(
          cat("limbs of ", needed, " bytes in memory of ", memory_[p].bytes(), " of part ", p),
          {{"bytes", needed}, {"expected", memory_[p].bytes()}});
  }
  bytes_ = shape.bytes();
  limb_bytes_ = shape.limb_bytes;
  rows_ = shape.rows;
  limbs_ = shape.limbs;
  before_ = std::move(before);
}

void* Blocks::add(Block block) {
  const std::lock_guard lock(mutex_);
  const u64 size = rounded(block.addresses());
  u64 address = next_;
  if (const auto found = free_.find(size); found != free_.end()) {
    address = found->second;
    free_.erase(found);
  } else {
    next_ += size;
  }
  blocks_.emplace(address, std::move(block));
  return std::bit_cast<void*>(address);  // a number: nothing is read through it
}

void Blocks::remove(const void* address) noexcept {
  std::map<u64, Block>::node_type gone;  // its buffers go back after the lock
  const std::lock_guard lock(mutex_);
  gone = blocks_.extract(reinterpret_cast<u64>(address));
  if (gone.empty()) return;
  try {
    free_.emplace(rounded(gone.mapped().addresses()), gone.key());
  } catch (const std::bad_alloc&) {
    return;  // the address is not used again
  }
}

void Blocks::reshape(const void* address, const device::LimbShape& shape) {
  const std::lock_guard lock(mutex_);
  const auto found = blocks_.find(reinterpret_cast<u64>(address));
  if (found == blocks_.end()) throw StateError("address of no memory of this device");
  found->second.reshape(shape);
}

Place Blocks::find(const void* address) const {
  const u64 at = reinterpret_cast<u64>(address);
  const std::lock_guard lock(mutex_);
  const auto behind = blocks_.upper_bound(at);
  const auto it = behind == blocks_.begin() ? blocks_.end() : std::prev(behind);
  if (it == blocks_.end() || at - it->first >= it->second.bytes())
    throw StateError("address of no memory of this device");
  Place place{&it->second, at - it->first};
  if (place.block->flat()) return place;
  place.row = place.offset / place.block->row_bytes();
  const u64 in_row = place.offset % place.block->row_bytes();
  place.position = static_cast<u32>(in_row / place.block->limb_bytes());
  place.rest = in_row % place.block->limb_bytes();
  return place;
}

void* Blocks::flat(u32 part, const void* address) const {
  const Place place = find(address);
  if (!place.block->flat())
    throw StateError("limbs of polynomials, expected memory that all parts of the device have");
  return place.block->flat(part, place.offset);
}

template <class Mine>
const void* Blocks::shape_local(u32 part, const ring::PolyView<const u32>& v, Mine& mine) const {
  if (v.limbs.empty()) return nullptr;
  const Place place = find(v.data);
  const Block& block = *place.block;
  const Layout& layout = block.layout();
  mine.limbs = layout.limbs(part, v.limbs);
  mine.shape.batch = v.shape.batch / layout.groups;
  if (mine.limbs.empty()) return nullptr;
  bool ok = !block.flat() && place.rest == 0 &&
            block.limb_bytes() == sizeof(u32) << v.shape.log_n &&
            place.position + v.limbs.size() <= block.limbs().size();
  for (u32 i = 0; ok && i < v.limbs.size(); ++i)
    ok = block.limbs()[place.position + i] == v.limbs[i];
  if (!ok) throw StateError("view of other limbs than those that its memory was allocated for");
  const u64 row = block.row_bytes() / sizeof(u32);
  const u64 own_row = u64(block.count(part)) << v.shape.log_n;
  const auto scaled = [&](u64 stride, u32 count) {
    if (count > 1 && stride % row != 0)
      throw StateError("view whose polynomials are not rows of its memory");
    return stride / row * own_row;
  };
  mine.component_stride = scaled(v.component_stride, v.shape.components);
  mine.batch_stride = scaled(v.batch_stride, v.shape.batch);
  // Each group has as many entries of the view, at the same places of its memory.
  if (layout.groups > 1 && (v.shape.batch % layout.groups != 0 || place.row >= block.group_rows() ||
                            mine.shape.batch * v.batch_stride != block.group_rows() * row))
    throw StateError("view of some entries of a batch that groups of parts share",
                     {{"batch", v.shape.batch}, {"groups", layout.groups}});
  return block.limb(part, place.row, place.position);
}

template const void* Blocks::shape_local(u32, const ring::PolyView<const u32>&,
                                         ring::PolyView<u32>&) const;
template const void* Blocks::shape_local(u32, const ring::PolyView<const u32>&,
                                         ring::PolyView<const u32>&) const;

ring::PolyView<const u32> Blocks::local_key(u32 part, const ring::PolyView<const u32>& key,
                                            const Layout& layout) const {
  const Block& block = *find(key.data).block;
  if (layout == block.layout()) return local(part, key);
  if (block.shared_by() != layout.groups || !(key.limbs == block.limbs()))
    throw StateError("a switching key whose limbs the groups of parts do not have",
                     {{"found", block.shared_by()}, {"expected", layout.groups}});
  return {reinterpret_cast<const u32*>(block.limb(part, 0, 0)), key.shape, block.kept(part),
          key.domain};
}

}  // namespace crenel::backend::split
