// Switching keys that do not fit the device: they lie in page-locked host memory, half of each (the
// other half is expanded from its seed), and come to the device ahead of use.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "crenel/core/fork_mutex.h"
#include "device/limb_room.h"
#include "rlwe/key_source.h"
#include "rlwe/ring_context.h"

namespace crenel::rlwe {

/// The b halves of a SwitchKey, [digit][limb][N], and what gives the a halves.
struct HostKey {
  device::HostBuffer half;
  random::Seed seed{};
  u32 digits = 0;
  LimbSet limbs;
  u32 first_digit = 0, max_level = SwitchKey::kAny;  ///< of SwitchKey

  u64 device_bytes() const { return 2 * half.bytes(); }
};
/// Memory for the half of a key of this shape.
HostKey make_host_key(const RingContext& ring, u32 digits, const LimbSet& limbs);
HostKey to_host(const RingContext& ring, const SwitchKey& key);

/// Frames on the device, each with room for one key. A lease brings what is missing; work of a
/// known order (KeySource::Pass) is read ahead of, each key in the frame whose own key is needed
/// last.
class StagedKeys final : public KeySource, public std::enable_shared_from_this<StagedKeys> {
 public:
  /// As many frames as `device_bytes` have room for, the first for the largest key, the next for
  /// the one after it, and so on: any keys, no more than there are frames, then fit together. A
  /// device of several parts has its limbs of a key in each part's share of the frame. The
  /// keys of encapsulation stay on the device, and count. ParameterError where they and two frames
  /// (one for a single key) do not fit.
  StagedKeys(std::shared_ptr<const RingContext> ring, std::map<KeyId, HostKey> keys,
             u64 device_bytes);

  std::optional<u32> max_level(KeyId id) const override;
  u32 shared_by(KeyId) const override { return 1; }
  bool fixed() const override { return false; }
  /// StateError when the keys of one operation are more than there are frames. Waits for leases of
  /// other threads to end where frames are short.
  KeyLease lease(device::Stream& stream, std::span<const KeyId> ids) override;

  std::vector<KeyId> ids() const;
  u64 device_bytes() const;  ///< of frames and resident keys
  u64 host_bytes() const;
  u64 half_bytes() const;  ///< of the b halves of all keys, wherever they lie

 protected:
  bool begin_pass(const void* order) override;
  void end_pass(bool whole) noexcept override;

 private:
  struct Frame {
    device::Buffer memory;
    u64 size = 0;  ///< bytes of the largest key that has room: every smaller one has
    KeyId id = kNoKey;
    u32 leases = 0;
    u64 process = 0;                        ///< core::forks() of the first of them
    u64 last_used = 0;                      ///< number of the lease
    std::shared_ptr<device::Event> loaded;  ///< the key is here
    /// The last work of every stream that read it: all of it is done before another key comes.
    std::map<const device::Stream*, std::shared_ptr<device::Event>> read;
  };

  /// Of all keys of at most `size` bytes.
  std::vector<device::LimbShape> shapes_within(u64 size) const;
  /// Those of `ids` that need frames, each once. StateError when there are fewer frames.
  std::vector<KeyId> staged_among(std::span<const KeyId> ids) const;
  Frame* find(KeyId id);
  /// The frame to give up for `id` among those of its size that no lease and none of `keep` needs:
  /// null when there is none, or only such as are needed within `distance` keys of the order.
  Frame* victim(KeyId id, std::span<const KeyId> keep, u64 distance);
  u64 bytes_of(KeyId id) const { return keys_.at(id).device_bytes(); }
  /// Those of `wanted` that are here and may stay where they are, so that the frames which no lease
  /// needs have room for the others; nothing where they have not.
  std::optional<std::vector<KeyId>> staying(std::span<const KeyId> wanted);
  /// Waits, giving the lock back meanwhile, until they have room, and returns these.
  std::vector<KeyId> await_room(std::span<const KeyId> wanted, std::unique_lock<ForkMutex>& lock);
  /// Keys that stay first, then the large before the small: each finds a frame.
  std::vector<KeyId> in_order(std::vector<KeyId> wanted, std::span<const KeyId> stay) const;
  /// Of keys that are here.
  std::vector<KeyView> views_of(std::span<const KeyId> ids);
  static bool among(std::span<const KeyId> keys, KeyId id);
  /// Whether the frames that neither a lease nor `stay` needs have room for `coming`.
  bool room_for(std::span<const KeyId> coming, std::span<const KeyId> stay) const;
  /// Keys of the order until `id` is needed; far away when it is not in it.
  u64 distance_to(KeyId id) const;
  void load(Frame& frame, KeyId id);
  /// Of the order that is followed. What fails here meets the lease that needs the key.
  void read_ahead() noexcept;
  void release(std::span<Frame* const> frames, device::Stream& stream) noexcept;

  std::shared_ptr<const RingContext> ring_;
  std::map<KeyId, HostKey> keys_;
  std::map<KeyId, SwitchKey> resident_;
  std::shared_ptr<device::Stream> copies_;
  std::vector<Frame> frames_;

  mutable ForkMutex mutex_;
  std::atomic<u32> releases_{0};  ///< counted up for those who wait for a frame
  u64 leases_ = 0;
  std::map<const void*, std::vector<KeyId>> orders_;  ///< of finished passes
  std::vector<KeyId> pass_;              ///< keys of the pass so far; empty between passes
  std::thread::id pass_thread_;          ///< whose leases are the pass; none between passes
  const void* order_of_pass_ = nullptr;  ///< of this pass or the last: the next is likely the same
};

}  // namespace crenel::rlwe
