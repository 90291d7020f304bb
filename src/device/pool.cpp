#include "device/pool.h"

#include <algorithm>

#include "crenel/core/error.h"
#include "crenel/core/watch.h"
#include "device/room.h"

namespace crenel::device {

Pool::Block Pool::pick(Lists& from, std::size_t least, std::size_t most, bool secret) {
  Free& list = from[secret ? 1 : 0];
  const auto it = list.lower_bound(least);
  if (it == list.end() || it->first > most) return {};
  const Block block{it->second.data, it->first, secret};
  list.erase(it);
  return block;
}

void Pool::put(Lists& into, Block block) {
  // Most recently freed first: its contents are the likeliest to be in cache.
  Free& list = into[block.secret ? 1 : 0];
  list.insert(list.lower_bound(block.capacity), {block.capacity, {block.data, ++releases_}});
}

Pool::Block Pool::take(std::size_t least, std::size_t most, bool secret) {
  stream_.device().expect_own_process();
  std::unique_lock lock(mutex_);
  Block block;
  if (capturing()) {
    block = pick(capture_->idle, least, most, secret);
    if (block.data) use_.graphs -= block.capacity;
  }
  if (!block.data) {
    block = pick(free_, least, most, secret);
    if (block.data) use_.idle -= block.capacity;
  }
  if (!block.data) block = from_device(lock, least, most);
  block.secret = secret;
  if (capturing()) {
    capture_->blocks.insert(block.data);
    if (capture_->recording) capture_->written.insert(block.data);
  }
  add(block.capacity);
  return block;
}

void Pool::add(std::size_t bytes) {
  use_.in_use += bytes;
  use_.peak = std::max(use_.peak, use_.in_use);
  high_ = std::max(high_, use_.in_use);
}

void Pool::count_taken(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  add(bytes);
}

void Pool::count_given(std::size_t bytes) noexcept {
  if (mutex_.abandoned()) return;
  const std::lock_guard lock(mutex_);
  use_.in_use -= bytes;
}

Pool::Block Pool::from_device(std::unique_lock<ForkMutex>& lock, std::size_t least,
                              std::size_t most) {
  Device& device = stream_.device();
  // A recording must not wait for its stream, and what it takes was sized by the run before it.
  const bool recording = capturing() && capture_->recording;
  if (const auto it = missed_.lower_bound(least); it != missed_.end() && it->first <= most) {
    regained_ += it->first;
    if (--it->second == 0) missed_.erase(it);
  }
  if (!recording) {
    const double peak = static_cast<double>(std::max(high_, use_.in_use + least));
    const std::size_t bound = std::max(static_cast<std::size_t>(kShare * peak), kFloor) + regained_;
    const std::size_t held = use_.in_use + use_.idle + least;
    if (held > bound && !none_idle()) {
      lock.unlock();
      stream_.synchronize();  // may stop, which must not be with the lock held
      lock.lock();
      give_back(held - bound, true);
    }
  }
  const bool refused = !recording && beyond_host(least);
  if (!refused) try {
      return {device.allocate(least), least};
    } catch (const DeviceError&) {
      if (recording) throw;
    }
  // Other streams' idle memory, too; their locks are not taken while this one is held.
  lock.unlock();
  device.trim();
  if (refused)
    if (const MemoryLeft there = device.left(); there.bytes < least)
      throw core::out_of_memory({.what = "a block of an operation",
                                 .bytes = least,
                                 .advice = "free what is not needed, or do less at a time"},
                                there.bytes, there.limit, device.info().name);
  lock.lock();
  return {device.allocate(least), least};
}

// A kernel grants host memory that it does not have, and ends who touches it.
bool Pool::beyond_host(std::size_t bytes) {
  const Device& device = stream_.device();
  if (!device.in_host_memory()) return false;
  since_asked_ += bytes;
  if (since_asked_ < core::kAskedFrom) return false;
  since_asked_ = 0;
  return device.left().bytes < bytes;
}

void Pool::give(Block block) noexcept {
  if (mutex_.abandoned()) return;
  const std::lock_guard lock(mutex_);
  use_.in_use -= block.capacity;
  if (capture_ && capture_->blocks.count(block.data)) {
    put(capture_->idle, block);
    use_.graphs += block.capacity;
    return;
  }
  put(free_, block);
  use_.idle += block.capacity;
  const std::size_t limit = stream_.device().idle_limit();
  if (use_.idle <= limit || stream_.capturing()) return;
  try {
    give_back(use_.idle - limit);
  } catch (...) {
    return;  // a device that failed; the next operation says so
  }
}

void Pool::give_back(std::size_t bytes, bool chosen) {
  if (none_idle()) return;
  const watch::Shield shield;
  stream_.synchronize();
  std::vector<std::pair<Free*, Free::iterator>> order;
  for (Free& list : free_)
    for (auto it = list.begin(); it != list.end(); ++it) order.emplace_back(&list, it);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return a.second->second.since < b.second->second.since;
  });
  std::size_t given = 0;
  for (std::size_t i = 0; i < order.size() && given < bytes; ++i) {
    const auto [list, block] = order[i];
    const std::size_t capacity = block->first;
    stream_.device().deallocate(block->second.data);
    list->erase(block);
    if (chosen) ++missed_[capacity];
    use_.idle -= capacity;
    given += capacity;
  }
}

void Pool::cut() {
  const std::lock_guard lock(mutex_);
  const std::size_t limit = stream_.device().idle_limit();
  if (use_.idle > limit) give_back(use_.idle - limit);
}

void Pool::trim() {
  const std::lock_guard lock(mutex_);
  give_back(use_.idle);
  forget();
}

void Pool::clear() noexcept {
  if (mutex_.abandoned() || !stream_.device().in_own_process()) return;
  const std::lock_guard lock(mutex_);
  for (Free& list : free_) {
    for (const auto& [capacity, idle] : list) stream_.device().deallocate(idle.data);
    list.clear();
  }
  use_.idle = 0;
  forget();
}

void Pool::forget() noexcept {
  missed_.clear();
  regained_ = 0;
  high_ = use_.in_use;
}

PoolUse Pool::use() const {
  const std::lock_guard lock(mutex_);
  return use_;
}

void Pool::reset_peak() {
  const std::lock_guard lock(mutex_);
  use_.peak = use_.in_use;
}

void Pool::begin_capture() {
  const std::lock_guard lock(mutex_);
  capture_ = std::make_unique<Capture>();
}

void Pool::begin_recording() {
  const std::lock_guard lock(mutex_);
  capture_->recording = true;
}

Pool::Blocks Pool::end_capture() noexcept {
  const std::lock_guard lock(mutex_);
  const std::unique_ptr<Capture> capture = std::move(capture_);
  Blocks kept;
  for (const bool secret : {false, true})
    for (const auto& [capacity, idle] : capture->idle[secret ? 1 : 0]) {
      const Block block{idle.data, capacity, secret};
      if (capture->written.count(idle.data)) {
        kept.push_back(block);
      } else {
        put(free_, block);
        use_.graphs -= capacity;
        use_.idle += capacity;
      }
    }
  return kept;
}

void Pool::release(const Blocks& blocks) noexcept {
  if (mutex_.abandoned()) return;
  const std::lock_guard lock(mutex_);
  for (const Block& block : blocks) {
    put(free_, block);
    use_.graphs -= block.capacity;
    use_.idle += block.capacity;
  }
}

}  // namespace crenel::device
