// What an operation needs of evaluation keys, and the error that names what is not there.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rlwe/key_levels.h"

namespace crenel::ckks {

/// The level of the operand, and the highest level that the key serves
/// (rlwe::SwitchKey::max_level): nothing where there is no key.
struct KeyLevel {
  u32 needed = 0;
  std::optional<u32> highest = {};

  bool met() const { return highest && rlwe::serves(*highest, needed); }
};

/// Collected before any work, so that one error names every key that is missing.
class KeyDemand {
 public:
  explicit KeyDemand(u32 log_n) : log_n_(log_n) {}

  /// A rotation, by the number it was asked for.
  void rotation(i64 steps, KeyLevel level);
  /// Any key.
  void key(rlwe::KeyId id, KeyLevel level);
  /// The same where levels do not matter.
  void rotation(i64 steps, bool there) { rotation(steps, any_level(there)); }
  void key(rlwe::KeyId id, bool there) { key(id, any_level(there)); }
  bool met() const { return missing_.empty() && missing_keys_.empty(); }
  /// KeyMissingError unless all is there: fields operation, rotations (those missing, ascending),
  /// and key (names of the others); of keys that serve lower levels only also level (what is
  /// needed) and max_level (what the lowest of them serves). `call` makes what is needed; default:
  /// the call that asks for exactly that.
  void expect(const std::string& operation, const std::string& call = {}) const;

 private:
  static KeyLevel any_level(bool there) {
    return {0, there ? std::optional(rlwe::SwitchKey::kAny) : std::nullopt};
  }
  void note(const std::string& name, KeyLevel level);
  std::string call() const;

  u32 log_n_;
  std::set<i64> needed_, missing_;
  std::vector<std::string> needed_keys_, missing_keys_;  ///< by name
  u32 level_ = 0;                                        ///< the highest that is needed
  bool aligned_ = false;                                 ///< some for aligned levels
  /// Names of the keys that serve too low levels, by what is needed and what they serve.
  std::map<std::pair<u32, u32>, std::vector<std::string>> low_;
  std::set<std::string> absent_;  ///< of those missing: there is no key at all
};

}  // namespace crenel::ckks
