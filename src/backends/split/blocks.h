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

/// How polynomials are dealt out. Groups of neighbouring parts have equal shares of the rows, the
/// first group the first ones; within a group neighbours of a chain lie on different parts, so that
/// every window of a chain that slides is divided equally. One group: every row is all parts'.
struct Layout {
  u32 parts = 1;
  u32 groups = 1;

  u32 members() const { return parts / groups; }  ///< parts of a group
  u32 group(u32 part) const { return part / members(); }
  /// The part of a group that keeps a limb.
  u32 part(u32 group, u32 prime_id) const { return group * members() + prime_id % members(); }
  /// Whether a part keeps a limb of its group's rows.
  bool keeps(u32 part, u32 prime_id) const { return prime_id % members() == part % members(); }
  /// The members of `limbs` that it keeps, in their order.
  LimbSet limbs(u32 part, const LimbSet& limbs) const;
  /// `limbs`, those of a group's first part first: the order in which gathered ones lie.
  LimbSet by_part(const LimbSet& limbs) const;
  bool operator==(const Layout&) const = default;
};

/// Groups that batches may be dealt out to.
constexpr u32 groups_of(u32 parts) { return parts % 2 == 0 ? 2 : 1; }

/// One allocation. Rows of limbs, or flat: every part has all bytes. Of a room the rows and limbs
/// change.
class Block {
 public:
  /// Flat.
  Block(u64 bytes, std::vector<device::Buffer> memory);
  /// `memory`: of each part its limbs of its group's rows, of which there are `rows` in all; empty
  /// where it has none.
  Block(const Layout& layout, const LimbSet& limbs, u64 rows, u64 limb_bytes,
        std::vector<device::Buffer> memory);
  /// Rows that are all parts', and of each part behind its own limbs those that it would keep of
  /// rows in `groups` groups: for operations on either layout. Written part by part.
  static Block shared(u32 groups, const LimbSet& limbs, u64 rows, u64 limb_bytes,
                      std::vector<device::Buffer> memory);
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
  const Layout& layout() const { return layout_; }
  /// Groups whose limbs parts have beside their own; 1: they have none.
  u32 shared_by() const { return shared_by_; }
  /// Of a part, in memory: its limbs, and of shared memory what it has of its group's further ones.
  LimbSet kept(u32 part) const;
  /// Rows that a group has.
  u64 group_rows() const { return rows_ / layout_.groups; }
  /// Limbs of a row in a part's memory.
  u32 count(u32 part) const {
    return before_[part].back() + (further_.empty() ? 0 : further_[part].size());
  }
  u32 part(u64 row, u32 position) const {
    return layout_.part(static_cast<u32>(row / group_rows()), limbs_[position]);
  }
  /// Where a part of the row's group keeps the first of its limbs from `position` on.
  u8* limb(u32 part, u64 row, u32 position) const {
    return memory_[part].as<u8>() +
           (row % group_rows() * count(part) + before_[part][position]) * limb_bytes_;
  }
  u8* flat(u32 part, u64 offset) const { return memory_[part].as<u8>() + offset; }

 private:
  bool flat_;
  Layout layout_;
  u64 bytes_, addresses_, limb_bytes_ = 0, rows_ = 0;
  LimbSet limbs_;
  u32 shared_by_ = 1;
  std::vector<LimbSet> further_;  ///< by part
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

  /// What a part has of a view: its limbs, of its group's entries. Without limbs where it has none.
  template <class Word>
  ring::PolyView<Word> local(u32 part, const ring::PolyView<Word>& v) const {
    ring::PolyView<Word> mine = v;
    mine.data = const_cast<Word*>(static_cast<const u32*>(shape_local(part, v, mine)));
    return mine;
  }
  /// How the memory of a view is dealt out.
  template <class Word>
  Layout layout(const ring::PolyView<Word>& v) const {
    return find(v.data).block->layout();
  }
  /// A whole key as operations on this layout read it: shared memory has more limbs for those on
  /// groups.
  ring::PolyView<const u32> local_key(u32 part, const ring::PolyView<const u32>& key,
                                      const Layout& layout) const;

 private:
  /// The address; the rest of `mine` is set.
  template <class Mine>
  const void* shape_local(u32 part, const ring::PolyView<const u32>& v, Mine& mine) const;

  const u32 parts_;
  mutable ForkMutex mutex_;
  std::map<u64, Block> blocks_;   ///< by address
  std::multimap<u64, u64> free_;  ///< bytes to address, of blocks that are gone
  u64 next_ = u64(0xe) << 56;     ///< not canonical on x86-64
};

}  // namespace crenel::backend::split
