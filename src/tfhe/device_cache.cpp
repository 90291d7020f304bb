#include "tfhe/device_cache.h"

#include <algorithm>

namespace crenel::tfhe {

void DeviceCache::insert(const std::string& key, Array array) {
  const auto size = [](const std::string& text, const Array& words) {
    return words->bytes() + text.size();
  };
  const u64 bytes = size(key, array);
  if (bytes > max_bytes_) return;
  while (!entries_.empty() && (entries_.size() >= max_entries_ || bytes_ + bytes > max_bytes_)) {
    const auto oldest = std::min_element(
        entries_.begin(), entries_.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    bytes_ -= size(oldest->first, oldest->second.array);
    entries_.erase(oldest);
  }
  entries_.emplace(key, Entry{std::move(array), ++clock_});
  bytes_ += bytes;
}

}  // namespace crenel::tfhe
