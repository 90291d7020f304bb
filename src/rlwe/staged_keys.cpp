#include "rlwe/staged_keys.h"

#include <algorithm>
#include <limits>

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

// Device memory of the frame's shape, for the key of a host half.
Poly room_for(const RingContext& ring, device::Stream& stream, const HostKey& key) {
  return Poly::kept(stream, {ring.log_n(), 2, key.digits}, key.limbs, Domain::eval);
}

void bring(const RingContext& ring, device::Stream& stream, Poly& pairs, const HostKey& key) {
  const u64 digit = key.half.bytes() / key.digits;
  for (u32 d = 0; d < key.digits; ++d)
    stream.upload(pairs.view().limb(d, 0, 0), key.half.as<u8>() + d * digit, digit);
  expand_uniform(ring, stream, pairs.view().components(1, 1), key.seed);
}

}  // namespace

HostKey make_host_key(const RingContext& ring, u32 digits, const LimbSet& limbs) {
  return {ring.device().allocate_host(half_bytes(ring, digits, limbs)), {}, digits, limbs};
}

HostKey to_host(const RingContext& ring, const SwitchKey& key) {
  HostKey host = make_host_key(ring, key.pairs.shape().batch, key.pairs.limbs());
  host.seed = key.seed;
  const u64 digit = host.half.bytes() / host.digits;
  for (u32 d = 0; d < host.digits; ++d)
    ring.stream().copy_out(host.half.as<u8>() + d * digit, key.pairs.view().limb(d, 0, 0), digit);
  return host;
}

StagedKeys::StagedKeys(std::shared_ptr<const RingContext> ring, std::map<KeyId, HostKey> keys,
                       u64 device_bytes)
    : ring_(std::move(ring)), keys_(std::move(keys)), copies_(ring_->device().make_stream()) {
  u64 fixed = 0;
  for (KeyId id : {kDenseToSparse, kSparseToDense}) {
    auto node = keys_.extract(id);
    if (node.empty()) continue;
    SwitchKey key{room_for(*ring_, *copies_, node.mapped()), node.mapped().seed};
    bring(*ring_, *copies_, key.pairs, node.mapped());
    fixed += key.pairs.bytes();
    resident_.emplace(id, std::move(key));
  }
  copies_->synchronize();  // the halves of resident keys go
  if (keys_.empty()) return;
  const u64 frame = 2 * keys_.begin()->second.half.bytes();
  const u64 wanted =
      std::min<u64>(keys_.size(), device_bytes > fixed ? (device_bytes - fixed) / frame : 0);
  if (wanted < std::min<u64>(2, keys_.size()))
    throw ParameterError(
        cat("staged keys within ", device_bytes, " bytes of device memory, expected at least ",
            fixed + 2 * frame, ": ", fixed, " that stay there and two keys of ", frame),
        {{"device_bytes", cat(device_bytes)}, {"expected", cat(fixed + 2 * frame)}});
  frames_.resize(wanted);
  for (Frame& f : frames_) f.pairs = room_for(*ring_, *copies_, keys_.begin()->second);
}

std::vector<KeyId> StagedKeys::ids() const {
  std::vector<KeyId> all;
  for (const auto& [id, key] : keys_) all.push_back(id);
  for (const auto& [id, key] : resident_) all.push_back(id);
  return all;
}

u64 StagedKeys::device_bytes() const {
  u64 bytes = 0;
  for (const Frame& f : frames_) bytes += f.pairs.bytes();
  for (const auto& [id, key] : resident_) bytes += key.pairs.bytes();
  return bytes;
}

u64 StagedKeys::host_bytes() const {
  u64 bytes = 0;
  for (const auto& [id, key] : keys_) bytes += key.half.bytes();
  return bytes;
}

KeyLease StagedKeys::lease(device::Stream& stream, std::span<const KeyId> ids) {
  std::vector<KeyId> wanted;
  for (KeyId id : ids)
    if (keys_.count(id) && std::find(wanted.begin(), wanted.end(), id) == wanted.end())
      wanted.push_back(id);
  if (wanted.size() > frames_.size())
    throw StateError(
        cat("an operation reads ", wanted.size(), " keys at once, staged within room for ",
            frames_.size(), "; stage them with more device memory"),
        {{"keys", cat(wanted.size())}, {"frames", cat(frames_.size())}});
  std::vector<Frame*> held;
  std::unique_lock lock(mutex_);
  const auto enough = [&] {
    const auto usable = [&](const Frame& f) {
      return f.leases == 0 || std::find(wanted.begin(), wanted.end(), f.id) != wanted.end();
    };
    return std::count_if(frames_.begin(), frames_.end(), usable) >= std::ssize(wanted);
  };
  released_.wait(lock, enough);
  ++leases_;
  for (KeyId id : wanted) {
    Frame* frame = find(id);
    if (frame == nullptr) {
      frame = victim(wanted, 0);
      load(*frame, id);
    }
    stream.wait_for(frame->loaded);
    ++frame->leases;
    frame->last_used = leases_;
    held.push_back(frame);
  }
  if (order_of_pass_ != nullptr) pass_.insert(pass_.end(), wanted.begin(), wanted.end());
  read_ahead();
  std::vector<KeyView> views;
  for (KeyId id : ids) {
    const auto fixed = resident_.find(id);
    if (id == kNoKey)
      views.emplace_back();
    else
      views.push_back(fixed != resident_.end() ? fixed->second.view()
                                               : KeyView(std::as_const(find(id)->pairs).view()));
  }
  if (held.empty()) return KeyLease(std::move(views));
  std::shared_ptr<void> hold(static_cast<void*>(this),
                             [self = shared_from_this(), held, where = stream.shared_from_this()](
                                 void*) { self->release(held, *where); });
  return KeyLease(std::move(views), std::move(hold));
}

void StagedKeys::release(std::span<Frame* const> frames, device::Stream& stream) {
  std::shared_ptr<device::Event> read;
  try {
    read = stream.mark();
  } catch (...) {  // a device that failed reads no more
  }
  const std::lock_guard lock(mutex_);
  for (Frame* frame : frames) {
    frame->read = read;
    --frame->leases;
  }
  released_.notify_all();
  try {
    read_ahead();
  } catch (...) {  // whoever needs the key meets the same
  }
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

StagedKeys::Frame* StagedKeys::victim(std::span<const KeyId> keep, u64 distance) {
  Frame* best = nullptr;
  u64 farthest = 0;
  for (Frame& f : frames_) {
    if (f.leases != 0 || std::find(keep.begin(), keep.end(), f.id) != keep.end()) continue;
    if (f.id == kNoKey) return &f;
    const u64 away = distance_to(f.id);
    // Among those that no order names the one that was not used for longest.
    if (best == nullptr || away > farthest || (away == farthest && f.last_used < best->last_used))
      best = &f, farthest = away;
  }
  return best != nullptr && farthest >= distance ? best : nullptr;
}

void StagedKeys::load(Frame& frame, KeyId id) {
  copies_->wait_for(frame.read);
  bring(*ring_, *copies_, frame.pairs, keys_.at(id));
  frame.id = id;
  frame.loaded = copies_->mark();
  frame.read = nullptr;
}

void StagedKeys::read_ahead() {
  const auto known = orders_.find(order_of_pass_);
  if (known == orders_.end()) return;
  const auto& order = known->second;
  for (u64 k = 0; k < std::min<u64>(order.size(), kReadAhead); ++k) {
    const KeyId id = order[(pass_.size() + k) % order.size()];
    if (find(id) != nullptr) continue;
    Frame* frame = victim({}, k + 1);
    if (frame == nullptr) return;
    load(*frame, id);
  }
}

void StagedKeys::begin_pass(const void* order) {
  const std::lock_guard lock(mutex_);
  order_of_pass_ = order;
  pass_.clear();
  read_ahead();
}

void StagedKeys::end_pass() {
  const std::lock_guard lock(mutex_);
  orders_[order_of_pass_] = pass_;
  pass_.clear();  // the next pass is likely to be the same
  read_ahead();
}

}  // namespace crenel::rlwe
