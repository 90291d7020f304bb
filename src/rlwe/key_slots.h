// Addresses of switching keys in device memory: what is recorded with them serves other keys.
#pragma once

#include <array>
#include <map>
#include <mutex>

#include "crenel/core/fork_mutex.h"
#include "rlwe/key_source.h"

namespace crenel::rlwe {

/// One slot a key. Operations that are queued with its views read the keys that the slots hold when
/// they run.
class KeySlots final : public KeySource {
 public:
  /// Slots for the keys of `set`, which is not kept.
  KeySlots(device::Stream& stream, const EvaluationKeySet& set);

  std::optional<u32> max_level(KeyId id) const override;
  u32 shared_by(KeyId id) const override { return slots_.at(id).view.shared_by; }
  bool fixed() const override { return false; }
  /// Notes which keys are asked for: those are what bind() needs.
  KeyLease lease(device::Stream& stream, std::span<const KeyId> ids) override;

  /// The ids asked for so far, ascending.
  std::vector<KeyId> used() const;
  /// Whether the source has every key in use, each of the levels that its slot was made for and
  /// shared as it is, and no other aligned ones beside them: operations would take those, and give
  /// other bits.
  bool fit(const KeySource& source) const;
  /// What is queued on `stream` from now on reads the keys of `source`, until the next call. The
  /// source has every key in use, with the shape of the slot (StateError otherwise: what was
  /// recorded reads words at the places of that shape). The lease is to be held until the work is
  /// queued: another's keys may stand at these addresses once it ended. One caller at a time.
  [[nodiscard]] KeyLease bind(device::Stream& stream, KeySource& source) {
    return bind(stream, source, used());
  }
  /// The same with every key that there is a slot for, for the recording itself.
  [[nodiscard]] KeyLease bind_all(device::Stream& stream, KeySource& source);

 private:
  KeyLease bind(device::Stream& stream, KeySource& source, std::span<const KeyId> ids);

  struct Slot {
    KeyView view;    ///< shape, and the slot's address
    u32 max_level;   ///< of the keys that fit
    std::size_t at;  ///< index in the table
    bool used = false;
  };
  struct Staging {
    device::HostBuffer words;
    std::shared_ptr<device::Event> copied;
  };

  mutable ForkMutex mutex_;  ///< of `used`
  std::map<KeyId, Slot> slots_;
  device::Buffer table_;            ///< [slots] addresses
  std::vector<const Word*> bound_;  ///< what the table holds, null where that is not known
  std::array<Staging, 4> staging_;  ///< in turn, so that an upload need not wait for the last one
  std::size_t next_ = 0;
};

}  // namespace crenel::rlwe
