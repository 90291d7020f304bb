#include "tfhe/integer/circuit_cache.h"

#include <mutex>
#include <utility>

namespace crenel::tfhe::radix {

u64 CircuitCache::Known::bytes() const {
  u64 sum = sizeof(Entry);
  for (const auto& shape : shapes)
    if (shape) sum += shape->bytes();
  for (const auto& program : programs)
    if (program) sum += program->bytes();
  return sum;
}

u64 CircuitCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

CircuitCache::Ready CircuitCache::get(const ContentKey& key, CircuitForm form, u64 size,
                                      u32 processors, const Make& make) {
  const Known before = known(key.text());
  Known found = before;
  const auto composed = [&](Form f) -> const Ready& {
    Ready& program = found.programs[index_of(f)];
    if (!program) program = std::make_shared<const Program>(make(f));
    return program;
  };
  Form taken = form == CircuitForm::lean ? Form::lean : Form::fast;
  if (form == CircuitForm::automatic) {
    for (const Form f : kAllForms) {
      auto& shape = found.shapes[index_of(f)];
      if (!shape) shape = std::make_shared<const Shape>(composed(f)->plan.shape());
    }
    taken = choose(found.shapes, size, processors);
  }
  Ready program = composed(taken);
  // of forms that were only compared the numbers stay
  for (const Form f : kAllForms)
    if (f != taken) found.programs[index_of(f)] = before.programs[index_of(f)];
  if (found.shapes != before.shapes || found.programs != before.programs) keep(key.text(), found);
  return program;
}

CircuitCache::Known CircuitCache::known(const std::string& key) {
  if (!usable()) return {};
  const std::lock_guard lock(mutex_);
  const auto place = places_.find(key);
  if (place == places_.end()) return {};
  entries_.splice(entries_.begin(), entries_, place->second);
  return place->second->known;
}

void CircuitCache::keep(const std::string& key, const Known& found) {
  if (!usable()) return;
  std::list<Entry> dropped;  // freed without the lock
  const std::lock_guard lock(mutex_);
  const auto drop = [&](std::list<Entry>::iterator at) {
    bytes_ -= at->bytes();
    places_.erase(at->key);
    dropped.splice(dropped.begin(), entries_, at);
  };
  Entry entry{key, found};
  if (const auto place = places_.find(key); place != places_.end()) {
    // another thread may have kept other forms meanwhile
    for (std::size_t f = 0; f < kFormCount; ++f) {
      const Known& other = place->second->known;
      if (other.shapes[f]) entry.known.shapes[f] = other.shapes[f];
      if (other.programs[f]) entry.known.programs[f] = other.programs[f];
    }
    drop(place->second);
  }
  const u64 bytes = entry.bytes();
  if (bytes > max_bytes_) return;
  while (bytes_ + bytes > max_bytes_) drop(std::prev(entries_.end()));
  entries_.push_front(std::move(entry));
  places_.emplace(key, entries_.begin());
  bytes_ += bytes;
}

}  // namespace crenel::tfhe::radix
