// The traffic account: what every launch moves through the cache and computes, by kind and stage.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "crenel/device/device.h"

namespace crenel::device {

/// What a launch mainly does.
enum class Work : u8 {
  ntt,
  base_conversion,
  elementwise,
  automorphism,
  key_multiply,
  sampling,
  copy,
};
inline constexpr u32 kWorks = 7;
/// "ntt", "base_conversion", ...
const char* name_of(Work work);

/// One launch, as its launcher states it: bytes are those that the kernel asks of the second-level
/// cache (of the memory system behind the first level), each access in whole 32-byte sectors.
struct LaunchRecord {
  std::string_view kernel;  ///< a literal: name of the kernel without template arguments
  Work work = Work::copy;
  std::string stage;   ///< labels of the stages it was queued in, outermost first, "a/b"
  u32 limbs = 0;       ///< of the output
  u32 polys = 0;       ///< of the output: components times batch
  u64 read_bytes = 0;  ///< data, keys and tables
  u64 written_bytes = 0;
  u64 streamed_bytes = 0;   ///< of those read: keys and plaintexts, which no cache will hold
  u64 repeated_bytes = 0;   ///< of those read: tables, and data that this launch has read before
  u64 multiply_adds = 0;    ///< core products: a butterfly, a source times a matrix entry, ...
  u64 butterflies = 0;      ///< of the products: those of transforms
  bool replayed = false;    ///< by a graph; otherwise queued on its own
  bool overlapped = false;  ///< may begin while the launch before it ends

  bool operator==(const LaunchRecord&) const = default;
};

/// Sums over records.
struct Traffic {
  u64 launches = 0;
  u64 read_bytes = 0;
  u64 written_bytes = 0;
  u64 streamed_bytes = 0;
  u64 multiply_adds = 0;
  u64 butterflies = 0;

  /// Adds a launch.
  Traffic& operator+=(const LaunchRecord& record);
  bool operator==(const Traffic&) const = default;
};

/// Collects the records of the streams that it is attached to (Stream::account), from any number of
/// threads: those of one thread are in its order. Only the CUDA backend states its launches; on the
/// others an account stays empty.
class Account {
 public:
  /// Behind those that are there; backends call it.
  void add(LaunchRecord record);
  void add(const std::vector<LaunchRecord>& records);
  /// What was queued so far, in order.
  std::vector<LaunchRecord> records() const;
  /// Sums over records().
  Traffic total() const;
  /// Forgets all records.
  void clear();

 private:
  mutable ForkMutex mutex_;
  std::vector<LaunchRecord> records_;
};

/// Labels what its thread queues on a stream during its life; stages nest. Does nothing unless an
/// account was attached when it began, nor without a label. Ends in the thread that it began in.
class Stage {
 public:
  /// Until it goes, in this thread.
  Stage(Stream& stream, std::string_view label);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

 private:
  Stream* stream_ = nullptr;  ///< null: nothing to undo
  std::size_t before_ = 0;    ///< length of the path without this label
};

}  // namespace crenel::device
