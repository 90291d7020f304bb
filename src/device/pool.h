// The memory of a stream: blocks that are used again, and the rule by which they are given back.
#pragma once

#include <array>
#include <map>
#include <mutex>
#include <set>

#include "crenel/device/device.h"

namespace crenel::device {

/// Freed blocks are kept for the next who asks, since taking memory from a device and giving it
/// back synchronises. What is idle is given back, the longest unused first, in three places only:
///
/// * before new memory is taken from the device: as much as the pool would then hold beyond
///   kShare times the highest number of bytes in use since the last trim(), kFloor at least.
///   Work that runs a second time takes no new memory, so it never pays for this. A block that is
///   asked for again after it was given back raises the bound by its size: work whose blocks are
///   more than that share of its peak has them all from its third run on;
/// * when a buffer is freed, beyond the device's limit on idle memory (Device::set_idle_limit);
/// * all of it, when the device has no more memory.
///
/// Blocks that held secrets serve secrets only. They were wiped, but the zeros may not have come to
/// the memory yet, and a device may let go of what nobody reads again, as CUDA's do with
/// digits (Tunable::discard_read): below the zeros the memory has the secret.
///
/// Blocks of a capture are the capture's: nobody else gets those that it freed, and the recording
/// that it made keeps those that its work wrote to.
///
/// What another thread held when this process was forked is lost here: not handed out again.
class Pool {
 public:
  static constexpr double kShare = 1.25;
  static constexpr std::size_t kFloor = std::size_t(64) << 20;

  struct Block {
    void* data = nullptr;
    std::size_t capacity = 0;
    bool secret = false;
  };
  using Blocks = std::vector<Block>;

  explicit Pool(Stream& stream) : stream_(stream) {}
  ~Pool() { clear(); }

  /// A block of `least` to `most` bytes; new ones have `least`. OutOfMemoryError where there is
  /// none.
  Block take(std::size_t least, std::size_t most, bool secret = false);
  void give(Block block) noexcept;
  /// Memory in use that is no block of the pool's.
  void count_taken(std::size_t bytes);
  void count_given(std::size_t bytes) noexcept;
  /// All idle blocks, after synchronising the stream.
  void trim();
  /// What is idle beyond the device's limit.
  void cut();
  /// All idle blocks, without waiting: the stream's work is done.
  void clear() noexcept;

  PoolUse use() const;
  void reset_peak();

  /// From now on what the calling thread takes is a capture's.
  void begin_capture();
  /// What it takes from now on is part of the recording.
  void begin_recording();
  /// Blocks that the recording keeps: none where there was no begin_recording().
  Blocks end_capture() noexcept;
  /// Of a recording that is gone.
  void release(const Blocks& blocks) noexcept;

 private:
  struct Idle {
    void* data;
    u64 since;  ///< number of the release
  };
  using Free = std::multimap<std::size_t, Idle>;  ///< by capacity, the last freed first
  using Lists = std::array<Free, 2>;              ///< of ordinary blocks, of secret ones
  struct Capture {
    std::set<void*> blocks;   ///< taken since it began
    std::set<void*> written;  ///< of these since the recording began
    Lists idle;               ///< of these, freed
    bool recording = false;
  };

  void add(std::size_t bytes);
  static Block pick(Lists& from, std::size_t least, std::size_t most, bool secret);
  void put(Lists& into, Block block);
  bool none_idle() const { return free_[0].empty() && free_[1].empty(); }
  Block from_device(std::unique_lock<ForkMutex>& lock, std::size_t least, std::size_t most);
  /// Whether the host surely has no such block; asked once in core::kAskedFrom bytes.
  bool beyond_host(std::size_t bytes);
  /// Gives back idle blocks of `bytes` or more, the longest unused first; synchronises before.
  /// `chosen`: by the bound, which then rises when they are asked for again.
  void give_back(std::size_t bytes, bool chosen = false);
  /// What the bound rests on begins anew.
  void forget() noexcept;
  bool capturing() const { return capture_ && stream_.capturing(); }

  Stream& stream_;
  mutable ForkMutex mutex_;
  Lists free_;
  std::unique_ptr<Capture> capture_;
  std::map<std::size_t, std::size_t> missed_;  ///< capacities given back: how many of them
  PoolUse use_;
  std::size_t high_ = 0;      ///< highest use_.in_use since the last trim
  std::size_t regained_ = 0;  ///< bytes that were asked for again after they were given back
  u64 releases_ = 0;
  std::size_t since_asked_ = 0;  ///< bytes taken since the host was asked for what it has
};

}  // namespace crenel::device
