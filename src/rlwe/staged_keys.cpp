#include "rlwe/staged_keys.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <thread>
#include <tuple>

#include "crenel/core/watch.h"
#include "rlwe/secret/secret_key.h"

namespace crenel::rlwe {
namespace {

constexpr u64 kNever = std::numeric_limits<u64>::max();
// Keys of the order that are read ahead: those of one hoisted sum. Reading everything ahead that is
// needed sooner than some key that is here would give up keys that the rest of the order still has
// a use for: 62 loads a bootstrap in place of 12 to 19, with frames for 50 of 62 keys.
constexpr u64 kReadAhead = 8;

u64 half_bytes(const RingContext& ring, u32 digits, const LimbSet& limbs) {
  return u64(digits) * limbs.size() * ring.ring_dim() * sizeof(Word);
}

device::LimbShape shape_of(const RingContext& ring, const HostKey& key) {
  return {key.limbs, u64(2) * key.digits, static_cast<std::size_t>(ring.ring_dim()) * sizeof(Word)};
}

// The key of a host half, in memory that has its shape.
View view_of(const RingContext& ring, const device::Buffer& memory, const HostKey& key) {
  return View(memory.as<Word>(), {ring.log_n(), 2, key.digits}, key.limbs, Domain::eval);
}

void bring(const RingContext& ring, device::Stream& stream, const View& pairs, const HostKey& key) {
  const u64 digit = key.half.bytes() / key.digits;
  for (u32 d = 0; d < key.digits; ++d)
    stream.upload(pairs.limb(d, 0, 0), key.half.as<u8>() + d * digit, digit);
  expand_uniform(ring, stream, pairs.components(1, 1), key.seed, key.first_digit);
}

}  // namespace

HostKey make_host_key(const RingContext& ring, u32 digits, const LimbSet& limbs) {
  HostKey key;
  key.half = ring.device().allocate_host(half_bytes(ring, digits, limbs));
  key.digits = digits;
  key.limbs = limbs;
  return key;
}

HostKey to_host(const RingContext& ring, const SwitchKey& key) {
  HostKey host = make_host_key(ring, key.pairs.shape().batch, key.pairs.limbs());
  host.seed = key.seed;
  host.first_digit = key.first_digit;
  host.max_level = key.max_level;
  const u64 digit = host.half.bytes() / host.digits;
  for (u32 d = 0; d < host.digits; ++d)
    ring.stream().copy_out(host.half.as<u8>() + d * digit, key.pairs.view().limb(d, 0, 0), digit);
  return host;
}

StagedKeys::StagedKeys(std::shared_ptr<const RingContext> ring, std::map<KeyId, HostKey> keys,
                       u64 device_bytes)
    : ring_(std::move(ring)), keys_(std::move(keys)), copies_(ring_->device().make_stream()) {
  std::map<KeyId, HostKey> other;  // that stay
  u64 fixed = 0;
  for (KeyId id : {kDenseToSparse, kSparseToDense})
    if (auto node = keys_.extract(id)) {
      fixed += node.mapped().device_bytes();
      other.insert(std::move(node));
    }
  std::vector<u64> sizes;
  for (const auto& [id, key] : keys_) sizes.push_back(key.device_bytes());
  std::sort(sizes.rbegin(), sizes.rend());
  const u64 least = std::min<u64>(2, sizes.size());
  u64 largest = 0;
  for (u64 i = 0; i < least; ++i) largest += device::room_bytes(*copies_, shapes_within(sizes[i]));
  const u64 expected = fixed + largest;
  if (device_bytes < expected)
    throw ParameterError(
        cat("staged keys within ", device_bytes, " bytes of device memory, expected at least ",
            expected, ": ", fixed, " that stay there and ", largest, " of the ", least,
            least == 1 ? " largest key" : " largest keys"),
        {{"device_bytes", device_bytes}, {"expected", expected}});
  const watch::Shield shield;  // until the halves in host memory have been read
  for (const auto& [id, host] : other) {
    SwitchKey key{Poly::kept(*copies_, {ring_->log_n(), 2, host.digits}, host.limbs, Domain::eval),
                  host.seed};
    bring(*ring_, *copies_, key.pairs.view(), host);
    resident_.emplace(id, std::move(key));
  }
  copies_->synchronize();
  u64 left = device_bytes - fixed;
  for (u64 size : sizes) {
    const std::vector<device::LimbShape> shapes = shapes_within(size);
    const u64 room = device::room_bytes(*copies_, shapes);
    if (room > left) break;
    left -= room;
    Frame& frame = frames_.emplace_back();
    frame.memory = device::allocate_room(*copies_, shapes);
    frame.size = size;
  }
}

std::vector<device::LimbShape> StagedKeys::shapes_within(u64 size) const {
  std::vector<device::LimbShape> shapes;
  for (const auto& [id, key] : keys_)
    if (key.device_bytes() <= size) shapes.push_back(shape_of(*ring_, key));
  return shapes;
}

std::optional<u32> StagedKeys::max_level(KeyId id) const {
  if (const auto it = keys_.find(id); it != keys_.end()) return it->second.max_level;
  if (resident_.count(id) != 0) return SwitchKey::kAny;
  return std::nullopt;
}

std::vector<KeyId> StagedKeys::ids() const {
  std::vector<KeyId> all;
  for (const auto& [id, key] : keys_) all.push_back(id);
  for (const auto& [id, key] : resident_) all.push_back(id);
  return all;
}

u64 StagedKeys::device_bytes() const {
  u64 bytes = 0;
  for (const Frame& f : frames_) bytes += f.memory.bytes();
  for (const auto& [id, key] : resident_) bytes += key.pairs.bytes();
  return bytes;
}

u64 StagedKeys::host_bytes() const {
  u64 bytes = 0;
  for (const auto& [id, key] : keys_) bytes += key.half.bytes();
  return bytes;
}

u64 StagedKeys::half_bytes() const {
  u64 bytes = host_bytes();
  for (const auto& [id, key] : resident_) bytes += key.pairs.bytes() / 2;
  return bytes;
}

bool StagedKeys::among(std::span<const KeyId> keys, KeyId id) {
  return std::find(keys.begin(), keys.end(), id) != keys.end();
}

std::vector<KeyId> StagedKeys::staged_among(std::span<const KeyId> ids) const {
  std::vector<KeyId> wanted;
  for (KeyId id : ids)
    if (keys_.count(id) && std::find(wanted.begin(), wanted.end(), id) == wanted.end())
      wanted.push_back(id);
  if (wanted.size() > frames_.size())
    throw StateError(
        cat("an operation reads ", wanted.size(), " keys at once, staged within room for ",
            frames_.size(), "; stage them with more device memory"),
        {{"keys", wanted.size()}, {"frames", frames_.size()}});
  return wanted;
}

KeyLease StagedKeys::lease(device::Stream& stream, std::span<const KeyId> ids) {
  const std::vector<KeyId> wanted = staged_among(ids);
  const auto held = std::make_shared<std::vector<Frame*>>();
  held->reserve(wanted.size());
  // Before the lock: where a key cannot be brought, those before it are given back after it.
  std::shared_ptr<void> hold(static_cast<void*>(this),
                             [self = shared_from_this(), held, where = stream.shared_from_this()](
                                 void*) { self->release(*held, *where); });
  std::unique_lock lock(mutex_);
  std::vector<KeyId> stay = await_room(wanted, lock);
  ++leases_;
  for (KeyId id : in_order(wanted, stay)) {
    Frame* frame = find(id);
    if (frame != nullptr && !among(stay, id)) {  // in a frame that a larger key needs
      frame->id = kNoKey;
      frame = nullptr;
    }
    if (frame == nullptr) {
      frame = victim(id, stay, 0);
      load(*frame, id);
      stay.push_back(id);
    }
    frame->read.try_emplace(&stream);  // release() must not fail
    stream.wait_for(frame->loaded);
    if (frame->leases++ == 0) frame->process = core::forks();
    frame->last_used = leases_;
    held->push_back(frame);
  }
  if (pass_thread_ == std::this_thread::get_id())
    pass_.insert(pass_.end(), wanted.begin(), wanted.end());
  read_ahead();
  return KeyLease(views_of(ids), std::move(hold));
}

std::vector<KeyId> StagedKeys::await_room(std::span<const KeyId> wanted,
                                          std::unique_lock<ForkMutex>& lock) {
  for (;;) {
    if (auto stay = staying(wanted)) return std::move(*stay);
    for (const Frame& f : frames_)
      if (f.leases != 0 && f.process != core::forks())
        throw StateError(
            "staged keys are in use by a thread of the process that this one was forked from, "
            "which cannot give them back here: stage them anew, or fork while no thread computes",
            {{"found", "a lease held across fork()"}, {"expected", "keys at rest"}});
    const u32 seen = releases_.load();
    lock.unlock();
    if (!watch::active())
      releases_.wait(seen);
    else
      for (; releases_.load() == seen; watch::point())
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    lock.lock();
  }
}

std::vector<KeyId> StagedKeys::in_order(std::vector<KeyId> wanted,
                                        std::span<const KeyId> stay) const {
  std::stable_sort(wanted.begin(), wanted.end(), [&](KeyId a, KeyId b) {
    if (among(stay, a) != among(stay, b)) return among(stay, a);
    return bytes_of(a) > bytes_of(b);
  });
  return wanted;
}

std::vector<KeyView> StagedKeys::views_of(std::span<const KeyId> ids) {
  const auto staged_view = [&](KeyId id) {
    const HostKey& key = keys_.at(id);
    return KeyView(view_of(*ring_, find(id)->memory, key), key.first_digit);
  };
  std::vector<KeyView> views;
  for (KeyId id : ids) {
    const auto fixed = resident_.find(id);
    if (id == kNoKey)
      views.emplace_back();
    else
      views.push_back(fixed != resident_.end() ? fixed->second.view() : staged_view(id));
  }
  return views;
}

void StagedKeys::release(std::span<Frame* const> frames, device::Stream& stream) noexcept {
  if (frames.empty()) return;
  const watch::Shield shield;
  std::shared_ptr<device::Event> read;
  try {
    read = stream.mark();
  } catch (...) {
    try {
      stream.synchronize();
    } catch (...) {  // NOLINT(bugprone-empty-catch): a device that failed reads no more
    }
  }
  if (mutex_.abandoned()) return;
  const std::lock_guard lock(mutex_);
  for (Frame* frame : frames) {
    frame->read.find(&stream)->second = read;
    --frame->leases;
  }
  releases_.fetch_add(1);
  releases_.notify_all();
  read_ahead();
}

StagedKeys::Frame* StagedKeys::find(KeyId id) {
  const auto it =
      std::find_if(frames_.begin(), frames_.end(), [&](const Frame& f) { return f.id == id; });
  return it == frames_.end() ? nullptr : &*it;
}

u64 StagedKeys::distance_to(KeyId id) const {
  const auto known = orders_.find(order_of_pass_);
  if (known == orders_.end() || known->second.empty()) return kNever;
  const auto& order = known->second;
  for (u64 k = 0; k < order.size(); ++k)
    if (order[(pass_.size() + k) % order.size()] == id) return k;
  return kNever;
}

bool StagedKeys::room_for(std::span<const KeyId> coming, std::span<const KeyId> stay) const {
  std::vector<u64> needed, free;
  for (KeyId id : coming) needed.push_back(bytes_of(id));
  for (const Frame& f : frames_)
    if (f.leases == 0 && std::find(stay.begin(), stay.end(), f.id) == stay.end())
      free.push_back(f.size);
  if (needed.size() > free.size()) return false;
  std::sort(needed.rbegin(), needed.rend());
  std::sort(free.rbegin(), free.rend());
  return std::equal(needed.begin(), needed.end(), free.begin(), std::less_equal<>());
}

std::optional<std::vector<KeyId>> StagedKeys::staying(std::span<const KeyId> wanted) {
  std::vector<KeyId> here, leased, exact;
  const auto others = [&](std::span<const KeyId> stay) {
    std::vector<KeyId> coming;
    for (KeyId id : wanted)
      if (std::find(stay.begin(), stay.end(), id) == stay.end()) coming.push_back(id);
    return coming;
  };
  for (KeyId id : wanted) {
    const Frame* frame = find(id);
    if (frame == nullptr) continue;
    here.push_back(id);
    if (frame->leases != 0) leased.push_back(id);
    if (frame->leases != 0 || frame->size == bytes_of(id)) exact.push_back(id);
  }
  // A small key in a large frame may have to go elsewhere.
  for (const auto* stay : {&here, &exact, &leased})
    if (room_for(others(*stay), *stay)) return *stay;
  return std::nullopt;
}

StagedKeys::Frame* StagedKeys::victim(KeyId id, std::span<const KeyId> keep, u64 distance) {
  const u64 needed = bytes_of(id);
  Frame* best = nullptr;
  u64 farthest = 0;
  std::tuple<u64, u64, u64> highest;
  for (Frame& f : frames_) {
    if (f.leases != 0 || f.size < needed || std::find(keep.begin(), keep.end(), f.id) != keep.end())
      continue;
    const u64 away = f.id == kNoKey ? kNever : distance_to(f.id);
    const u64 used = f.id == kNoKey ? 0 : f.last_used;
    // Among those that no order names the one that was not used for longest; of empty ones the
    // smallest: larger keys will want the others.
    const auto rank = std::tuple(away, kNever - used, kNever - f.size);
    if (best == nullptr || rank > highest) best = &f, highest = rank, farthest = away;
  }
  return best != nullptr && farthest >= distance ? best : nullptr;
}

void StagedKeys::load(Frame& frame, KeyId id) {
  frame.id = kNoKey;  // until the key is here: what fails on the way leaves an empty frame
  for (const auto& [stream, event] : frame.read) copies_->wait_for(event);
  const HostKey& key = keys_.at(id);
  device::reshape(*copies_, frame.memory, shape_of(*ring_, key));
  bring(*ring_, *copies_, view_of(*ring_, frame.memory, key), key);
  frame.loaded = copies_->mark();
  frame.read.clear();
  frame.id = id;
}

void StagedKeys::read_ahead() noexcept try {
  const watch::Shield shield;
  const auto known = orders_.find(order_of_pass_);
  if (known == orders_.end()) return;
  const auto& order = known->second;
  for (u64 k = 0; k < std::min<u64>(order.size(), kReadAhead); ++k) {
    const KeyId id = order[(pass_.size() + k) % order.size()];
    if (find(id) != nullptr) continue;
    Frame* frame = victim(id, {}, k + 1);
    if (frame == nullptr) return;
    load(*frame, id);
  }
} catch (...) {  // NOLINT(bugprone-empty-catch): the frame stays empty, and is loaded on use
}

bool StagedKeys::begin_pass(const void* order) {
  const std::lock_guard lock(mutex_);
  if (pass_thread_ != std::thread::id()) return false;
  pass_thread_ = std::this_thread::get_id();
  order_of_pass_ = order;
  read_ahead();
  return true;
}

void StagedKeys::end_pass(bool whole) noexcept {
  const watch::Shield shield;
  const std::lock_guard lock(mutex_);
  pass_thread_ = std::thread::id();
  try {
    if (whole) orders_[order_of_pass_] = pass_;
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory, so the next pass is not read ahead of
  }
  pass_.clear();
  read_ahead();
}

}  // namespace crenel::rlwe
