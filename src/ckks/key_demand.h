// What an operation needs of evaluation keys, and the error that names what is not there.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "rlwe/keys.h"

namespace crenel::ckks {

/// Collected before any work, so that one error names every key that is missing.
class KeyDemand {
 public:
  explicit KeyDemand(u32 log_n) : log_n_(log_n) {}

  /// A rotation, by the number it was asked for.
  void rotation(i64 steps, bool there);
  /// Any key.
  void key(rlwe::KeyId id, bool there);
  bool met() const { return missing_.empty() && missing_keys_.empty(); }
  /// KeyMissingError unless all is there: fields operation, rotations (those missing, ascending),
  /// and key (names of the others). `call` makes what is needed; default: the call that asks for
  /// exactly that.
  void expect(const std::string& operation, const std::string& call = {}) const;

 private:
  std::string call() const;

  u32 log_n_;
  std::set<i64> needed_, missing_;
  std::vector<std::string> needed_keys_, missing_keys_;  ///< by name
};

}  // namespace crenel::ckks
