// What a context brings to its device once: arrays of words by content.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "core/watch_lock.h"
#include "crenel/device/device.h"
#include "tfhe/content_key.h"

namespace crenel::tfhe {

/// Arrays by content, the least recently used dropped first where there are bounds. Work queued
/// with an array that is dropped is safe: its memory returns to the stream's pool in stream order.
/// A recorded graph is not: whoever records holds the array, or takes it from a cache without
/// bounds. May be called from several threads; each content is made once while it stays.
class DeviceCache {
 public:
  using Array = std::shared_ptr<const device::Buffer>;

  DeviceCache() = default;
  DeviceCache(u64 max_bytes, std::size_t max_entries)
      : max_bytes_(max_bytes), max_entries_(max_entries) {}

  /// `make` gives the words (a vector) that `key` states; called when they are not here, which then
  /// waits for the copy.
  template <class Make>
  Array get(device::Stream& stream, const ContentKey& key, Make make) {
    const auto lock = watch::lock(mutex_);
    if (const auto found = entries_.find(key.text()); found != entries_.end()) {
      found->second.used = ++clock_;
      return found->second.array;
    }
    const auto words = make();
    auto array = std::make_shared<device::Buffer>(
        stream.allocate(words.size() * sizeof(typename decltype(words)::value_type)));
    stream.copy_in(array->data(), words.data(), array->bytes());
    insert(key.text(), array);
    return array;
  }
  /// Of the arrays on the device and of the keys beside them.
  u64 bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }

 private:
  struct Entry {
    Array array;
    u64 used = 0;
  };
  void insert(const std::string& key, Array array);

  u64 max_bytes_ = std::numeric_limits<u64>::max();
  std::size_t max_entries_ = std::numeric_limits<std::size_t>::max();
  mutable ForkMutex mutex_;
  std::map<std::string, Entry> entries_;
  u64 clock_ = 0;
  u64 bytes_ = 0;
};

}  // namespace crenel::tfhe
