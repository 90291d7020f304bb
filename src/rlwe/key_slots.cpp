#include "rlwe/key_slots.h"

#include <algorithm>

namespace crenel::rlwe {

KeySlots::KeySlots(device::Stream& stream, const EvaluationKeySet& set) {
  const std::vector<KeyId> ids = set.ids();
  const std::size_t bytes = ids.size() * sizeof(const Word*);
  table_ = stream.allocate(std::max(bytes, sizeof(const Word*)));
  bound_.assign(ids.size(), nullptr);
  for (Staging& staging : staging_) staging.words = stream.device().allocate_host(bytes);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    // Shape only: the address, which must not be null, is the slot's and never read as a key.
    const SwitchKey& key = *set.find(ids[i]);
    ConstView shape = key.pairs.view();
    const auto slot = table_.as<const Word* const>() + i;
    shape.data = reinterpret_cast<const Word*>(slot);
    KeyView view(shape, slot, key.first_digit);
    view.shared_by = key.shared_by;
    slots_.emplace(ids[i], Slot{view, key.max_level, i});
  }
}

std::optional<u32> KeySlots::max_level(KeyId id) const {
  const auto it = slots_.find(id);
  return it == slots_.end() ? std::nullopt : std::optional(it->second.max_level);
}

bool KeySlots::fit(const KeySource& source) const {
  const auto same = [&](KeyId id) { return source.max_level(id) == max_level(id); };
  const std::vector<KeyId> ids = used();
  return std::all_of(ids.begin(), ids.end(), [&](KeyId id) {
    return same(id) && source.shared_by(id) == shared_by(id) &&
           (is_aligned_key(id) || same(aligned_key(id)));
  });
}

KeyLease KeySlots::lease(device::Stream&, std::span<const KeyId> ids) {
  std::vector<KeyView> views;
  const std::lock_guard lock(mutex_);
  for (KeyId id : ids) {
    if (id == kNoKey) {
      views.emplace_back();
      continue;
    }
    Slot& slot = slots_.at(id);
    slot.used = true;
    views.push_back(slot.view);
  }
  return KeyLease(std::move(views));
}

std::vector<KeyId> KeySlots::used() const {
  const std::lock_guard lock(mutex_);
  std::vector<KeyId> ids;
  for (const auto& [id, slot] : slots_)
    if (slot.used) ids.push_back(id);
  return ids;
}

KeyLease KeySlots::bind_all(device::Stream& stream, KeySource& source) {
  std::vector<KeyId> ids;
  for (const auto& [id, slot] : slots_) ids.push_back(id);
  return bind(stream, source, ids);
}

KeyLease KeySlots::bind(device::Stream& stream, KeySource& source, std::span<const KeyId> ids) {
  KeyLease keys = source.lease(stream, ids);
  std::vector<const Word*> wanted = bound_;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Slot& slot = slots_.at(ids[i]);
    const ConstView &found = keys[i].pairs, &expected = slot.view.pairs;
    if (!(found.shape == expected.shape && found.limbs == expected.limbs &&
          keys[i].first_digit == slot.view.first_digit))
      throw StateError(
          cat("a switching key of ", found.shape.batch, " digits and ", found.limbs.size(),
              " limbs, recorded with ", expected.shape.batch, " and ", expected.limbs.size(),
              "; keys of a recording serve levels up to the same ones"),
          {{"found", found.limbs.size()}, {"expected", expected.limbs.size()}});
    if (keys[i].shared_by != slot.view.shared_by)
      throw StateError(
          cat("a switching key that ", keys[i].shared_by, " groups of the device's parts share, ",
              "recorded with one of ", slot.view.shared_by,
              "; on devices of an even number of parts those of a set with keys of encapsulation "
              "are shared, unless staged or made without entries_apart"),
          {{"found", keys[i].shared_by}, {"expected", slot.view.shared_by}});
    wanted[slot.at] = found.data;
  }
  if (wanted == bound_) return keys;
  Staging& staging = staging_[next_++ % staging_.size()];
  if (staging.copied) staging.copied->synchronize();
  std::copy(wanted.begin(), wanted.end(), staging.words.as<const void*>());
  bound_.assign(bound_.size(), nullptr);  // what fails from here on leaves an unknown table
  stream.upload_addresses(table_.data(), staging.words.as<const void*>(), wanted.size());
  staging.copied = stream.mark();
  bound_ = std::move(wanted);
  return keys;
}

}  // namespace crenel::rlwe
