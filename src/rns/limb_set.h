// LimbSet: which primes the limbs of a polynomial belong to, in memory order.
#pragma once

#include "crenel/core/error.h"
#include "crenel/core/types.h"

namespace crenel::rns {

/// Upper bound on the primes of one chain (Q and P together); N = 2^17 sets stay below it.
inline constexpr u32 kMaxLimbs = 128;

/// Ordered list of prime ids (positions in the chain, ckks::Params), by value: small enough to
/// travel as a kernel argument.
struct LimbSet {
  u8 count = 0;
  u8 id[kMaxLimbs] = {};

  LimbSet() = default;
  /// The ids begin, begin + 1, ..., end - 1.
  static LimbSet range(u32 begin, u32 end) {
    LimbSet s;
    for (u32 i = begin; i < end; ++i) s.push_back(i);
    return s;
  }

  u32 size() const { return count; }
  bool empty() const { return count == 0; }
  u32 operator[](u32 i) const { return id[i]; }
  u32 back() const {
    if (empty()) throw StateError("last limb of no limbs");
    return id[count - 1];
  }
  void push_back(u32 prime_id) {
    if (count >= kMaxLimbs || prime_id >= kMaxLimbs)
      throw ParameterError(cat("limb set overflow: prime id ", prime_id, ", at most ", kMaxLimbs));
    id[count++] = static_cast<u8>(prime_id);
  }

  /// Position of `prime_id`, or -1.
  int find(u32 prime_id) const {
    for (u32 i = 0; i < count; ++i)
      if (id[i] == prime_id) return static_cast<int>(i);
    return -1;
  }
  bool contains(u32 prime_id) const { return find(prime_id) >= 0; }
  bool contains_all(const LimbSet& other) const {
    for (u32 i = 0; i < other.count; ++i)
      if (!contains(other.id[i])) return false;
    return true;
  }
  /// Members of this set that are not in `other`, in this set's order.
  LimbSet minus(const LimbSet& other) const {
    LimbSet s;
    for (u32 i = 0; i < count; ++i)
      if (!other.contains(id[i])) s.push_back(id[i]);
    return s;
  }
  /// Members of both, in this set's order.
  LimbSet intersect(const LimbSet& other) const {
    LimbSet s;
    for (u32 i = 0; i < count; ++i)
      if (other.contains(id[i])) s.push_back(id[i]);
    return s;
  }
  /// This set followed by `other` (disjoint).
  LimbSet concat(const LimbSet& other) const {
    LimbSet s = *this;
    for (u32 i = 0; i < other.count; ++i) s.push_back(other.id[i]);
    return s;
  }

  friend bool operator==(const LimbSet& a, const LimbSet& b) {
    if (a.count != b.count) return false;
    for (u32 i = 0; i < a.count; ++i)
      if (a.id[i] != b.id[i]) return false;
    return true;
  }
};

}  // namespace crenel::rns
