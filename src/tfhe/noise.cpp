#include "tfhe/noise.h"

#include <algorithm>
#include <cmath>

namespace crenel::tfhe {

double Noise::Segment::variance() const {
  double sum = 0;
  for (const Part& p : parts) sum += p.factor * p.factor * p.source->variance;
  const double std = std::sqrt(sum) + dependent;
  return dependent > 0 ? std * std : sum;
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
    } else if ((same->factor += factor * theirs.factor) == 0) {
      parts.erase(same);
    }
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

Noise::Noise(u64 size, double variance) : Noise(size) {
  if (variance > 0)
    segments_[0].parts.push_back(
        {std::make_shared<const NoiseSource>(NoiseSource{variance}), 0, 1});
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
