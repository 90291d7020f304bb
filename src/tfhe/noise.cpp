#include "tfhe/noise.h"

#include <algorithm>
#include <cmath>

namespace crenel::tfhe {

double Noise::Segment::variance() const {
  double sum = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Part& p = parts[i];
    if (p.source->group == 1) {
      sum += p.factor * p.factor * p.source->variance;
      continue;
    }
    // Errors less than a group apart may be of one group, whatever the message, and those they are
    // linked with too: standard deviations add up. Counted where the first of them is.
    const std::vector<std::size_t> linked = linked_parts(i);
    if (linked[0] != i) continue;
    double factors = 0;
    for (const std::size_t j : linked) factors += std::abs(parts[j].factor);
    sum += factors * factors * p.source->variance;
  }
  const double std = std::sqrt(sum) + dependent;
  return dependent > 0 ? std * std : sum;
}

// Ascending indices of the parts of i's source that are reached from it in steps below a group.
std::vector<std::size_t> Noise::Segment::linked_parts(std::size_t i) const {
  const NoiseSource* const source = parts[i].source.get();
  u64 low = parts[i].offset, high = low;  // offsets reached
  std::vector<std::size_t> found;
  for (std::size_t known = 0;;) {
    found.clear();
    for (std::size_t j = 0; j < parts.size(); ++j)
      if (parts[j].source.get() == source && parts[j].offset + source->group > low &&
          parts[j].offset < high + source->group)
        found.push_back(j);
    if (found.size() == known) return found;
    known = found.size();
    for (const std::size_t j : found) {
      low = std::min(low, parts[j].offset);
      high = std::max(high, parts[j].offset);
    }
  }
}

Noise::Segment Noise::Segment::part(u64 first, u64 count) const {
  Segment out = *this;
  out.size = count;
  for (Part& p : out.parts) p.offset += first;
  return out;
}

void Noise::Segment::add(const Segment& other, double factor) {
  for (const Part& theirs : other.parts) {
    const auto same = std::find_if(parts.begin(), parts.end(), [&](const Part& p) {
      return p.source == theirs.source && p.offset == theirs.offset;
    });
    if (same == parts.end()) {
      parts.push_back({theirs.source, theirs.offset, factor * theirs.factor});
      continue;
    }
    same->factor += factor * theirs.factor;
    if (same->factor == 0) parts.erase(same);
  }
  dependent += std::abs(factor) * other.dependent;
  limit();
}

void Noise::Segment::limit() {
  if (parts.size() <= kMaxParts) return;
  dependent = std::sqrt(variance());
  parts.clear();
}

Noise::Noise(u64 size) { segments_.push_back({size, {}, 0}); }

Noise::Noise(u64 size, double variance, u32 group) : Noise(size) {
  if (variance > 0)
    segments_[0].parts.push_back(
        {std::make_shared<const NoiseSource>(NoiseSource{variance, group}), 0, 1});
}

u64 Noise::size() const {
  u64 size = 0;
  for (const Segment& s : segments_) size += s.size;
  return size;
}

double Noise::variance() const {
  double most = 0;
  for (const Segment& s : segments_) most = std::max(most, s.variance());
  return most;
}

Noise Noise::slice(u64 first, u64 count) const {
  Noise out;
  u64 begin = 0;
  for (const Segment& s : segments_) {
    const u64 from = std::max(first, begin), to = std::min(first + count, begin + s.size);
    if (from < to) out.segments_.push_back(s.part(from - begin, to - from));
    begin += s.size;
  }
  return out;
}

void Noise::append(const Noise& other) {
  segments_.insert(segments_.end(), other.segments_.begin(), other.segments_.end());
}

void Noise::cut_like(const Noise& other) {
  std::vector<Segment> cut;
  std::size_t mine = 0, theirs = 0;
  u64 done = 0, seen = 0;  // of segments_[mine] and of other.segments_[theirs]
  while (mine < segments_.size() && theirs < other.segments_.size()) {
    const u64 left = segments_[mine].size - done, right = other.segments_[theirs].size - seen;
    const u64 count = std::min(left, right);
    cut.push_back(segments_[mine].part(done, count));
    done = count == left ? 0 : done + count;
    seen = count == right ? 0 : seen + count;
    mine += count == left;
    theirs += count == right;
  }
  segments_ = std::move(cut);
}

void Noise::add(const Noise& other, double factor) {
  if (factor == 0) return;
  Noise addend = other;
  addend.cut_like(*this);
  cut_like(addend);
  for (std::size_t i = 0; i < segments_.size(); ++i) segments_[i].add(addend.segments_[i], factor);
}

Noise Noise::scaled(double factor) const {
  Noise out(size());
  out.add(*this, factor);
  return out;
}

}  // namespace crenel::tfhe
