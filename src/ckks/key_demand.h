// What an operation needs of evaluation keys, and the error that names what is not there.
#pragma once

#include <optional>
#include <string>
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

/// Collected before any work, so that one error names every key that is missing. What names keys is
/// not computed unless one is missing: a replay of a recording asks for all of them.
class KeyDemand {
 public:
  explicit KeyDemand(u32 log_n) : log_n_(log_n) {}

  /// A rotation, by the number it was asked for.
  void rotation(i64 steps, KeyLevel level) { ask({steps, rlwe::kNoKey, level}); }
  /// Any key.
  void key(rlwe::KeyId id, KeyLevel level) { ask({std::nullopt, id, level}); }
  /// The same where levels do not matter.
  void rotation(i64 steps, bool there) { rotation(steps, any_level(there)); }
  void key(rlwe::KeyId id, bool there) { key(id, any_level(there)); }
  bool met() const { return met_; }
  /// KeyMissingError unless all is there: fields operation, rotations (those missing, ascending),
  /// and key (names of the others); of keys that serve lower levels only also level (what is
  /// needed) and max_level (what the lowest of them serves). `call` makes what is needed; default:
  /// the call that asks for exactly that.
  void expect(const std::string& operation, const std::string& call = {}) const;

 private:
  struct Asked {
    std::optional<i64> steps;
    rlwe::KeyId id;  ///< where it was not asked for by steps
    KeyLevel level;
  };
  class Missing;

  static KeyLevel any_level(bool there) {
    return {0, there ? std::optional(rlwe::SwitchKey::kAny) : std::nullopt};
  }
  void ask(const Asked& asked) {
    asked_.push_back(asked);
    met_ = met_ && asked.level.met();
  }

  u32 log_n_;
  std::vector<Asked> asked_;
  bool met_ = true;
};

}  // namespace crenel::ckks
