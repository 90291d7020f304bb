// Memory of a split device: one address for what lies on several devices.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "crenel/core/fork_mutex.h"
#include "crenel/device/device.h"
#include "device/limb_room.h"
#include "ring/poly_view.h"

namespace crenel::backend::split {

using rns::LimbSet;

/// The part that keeps a limb: neighbours of a chain lie on different ones, so that every window of
/// a chain that slides is divided equally.
inline u32 part_of(u32 prime_id, u32 parts) { return prime_id % parts; }

/// The members of `limbs` that a part keeps, in their order.
LimbSet limbs_of(u32 part, u32 parts, const LimbSet& limbs);

/// One allocation. Rows of limbs, or flat: every part has all bytes. Of a room the rows and limbs
/// change.
class Block {
 public:
  /// Flat.
  Block(u64 bytes, std::vector<device::Buffer> memory);
  /// `memory`: of each part `rows` rows of its limbs, empty where it has none.
  Block(const LimbSet& limbs, u64 rows, u64 limb_bytes, std::vector<device::Buffer> memory);
  /// A room, which has no limbs yet: `memory` is as much of each part as any shape will take.
  static Block room(u64 bytes, std::vector<device::Buffer> memory);
  /// StateError where a part has no room for its limbs.
  void reshape(const device::LimbShape& shape);

  bool flat() const { return flat_; }
  const LimbSet& limbs() const { return limbs_; }
  u64 limb_bytes() const { return limb_bytes_; }
  u64 row_bytes() const { return limb_bytes_ * limbs_.size(); }
  u64 bytes() const { return bytes_; }
  u64 addresses() const { return addresses_; }  ///< bytes() at most, whatever its shape
  u32 parts() const { return static_cast<u32>(memory_.size()); }
  /// Limbs of a row that a part keeps.
  u32 count(u32 part) const { return before_[part].back(); }
  u32 part(u32 position) const { return part_of(limbs_[position], parts()); }
  /// Where a part keeps, in row `row`, the first of its limbs from `position` on.
  u8* limb(u32 part, u64 row, u32 position) const {
    return memory_[part].as<u8>() + (row * count(part) + before_[part][position]) * limb_bytes_;
  }
  u8* flat(u32 part, u64 offset) const { return memory_[part].as<u8>() + offset; }

 private:
  bool flat_;
  u64 bytes_, addresses_, limb_bytes_ = 0;
  LimbSet limbs_;
  std::vector<device::Buffer> memory_;
  std::vector<std::vector<u8>> before_;  ///< [part][position]: its limbs at lower positions
};

/// An address: a block, and what lies before the address in it.
struct Place {
  const Block* block;
  u64 offset;  ///< bytes
  u64 row = 0;
  u32 position = 0;  ///< of the limb
  u64 rest = 0;      ///< bytes inside the limb
};

/// Addresses are unique, aligned, and never those of real memory: nobody but the parts reads it.
class Blocks {
 public:
  explicit Blocks(u32 parts) : parts_(parts) {}
  u32 parts() const { return parts_; }

  void* add(Block block);
  /// Its memory goes back to the streams of the parts.
  void remove(const void* address) noexcept;
  /// Another shape for a room: Block::reshape(). StateError for an address of none.
  void reshape(const void* address, const device::LimbShape& shape);
  /// StateError for an address of none.
  Place find(const void* address) const;
  /// The same of a flat block: the address on a part.
  void* flat(u32 part, const void* address) const;

  /// What a part has of a view: its limbs. An empty view where it has none.
  template <class Word>
  ring::PolyView<Word> local(u32 part, const ring::PolyView<Word>& v) const {
    ring::PolyView<Word> mine = v;
    mine.data = const_cast<Word*>(static_cast<const u32*>(shape_local(
        part, v.data, v.limbs, v.shape, &mine.limbs, &mine.component_stride, &mine.batch_stride)));
    return mine;
  }

 private:
  const void* shape_local(u32 part, const u32* data, const LimbSet& limbs,
                          const ring::PolyShape& shape, LimbSet* mine, u64* component_stride,
                          u64* batch_stride) const;

  const u32 parts_;
  mutable ForkMutex mutex_;
  std::map<u64, Block> blocks_;   ///< by address
  std::multimap<u64, u64> free_;  ///< bytes to address, of blocks that are gone
  u64 next_ = u64(0xe) << 56;     ///< not canonical on x86-64
};

}  // namespace crenel::backend::split
