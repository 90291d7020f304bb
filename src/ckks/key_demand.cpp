#include "ckks/key_demand.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "ring/ring.h"

namespace crenel::ckks {
namespace {

constexpr const char* kRelinearisation = "relinearisation";
constexpr const char* kConjugation = "conjugate";
constexpr const char* kEncapsulation = "encapsulation";

std::string joined(const auto& all) {
  std::string text;
  for (const auto& one : all) text += cat(text.empty() ? "" : ", ", one);
  return text;
}

void add_name(std::vector<std::string>& names, const char* name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
}

/// The steps, in (-slots / 2, slots / 2], of the rotation that this element is.
i64 steps_of(u64 wanted, u32 log_n) {
  const i64 slots = i64(1) << (log_n - 1);
  const u64 mask = (u64(2) << log_n) - 1;
  u64 element = 1;
  i64 k = 0;
  for (; k < slots && element != wanted; ++k) element = element * 5 & mask;
  return k > slots / 2 ? k - slots : k;
}

}  // namespace

// What is asked for, by names, and what of it is not there.
class KeyDemand::Missing {
 public:
  explicit Missing(u32 log_n) : log_n_(log_n) {}
  void add(const Asked& asked) {
    if (asked.steps)
      rotation(*asked.steps, asked.level);
    else
      key(asked.id, asked.level);
  }
  [[noreturn]] void raise(const std::string& operation, const std::string& call) const;

 private:
  void rotation(i64 steps, KeyLevel level);
  void key(rlwe::KeyId id, KeyLevel level);
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

void KeyDemand::Missing::note(const std::string& name, KeyLevel level) {
  level_ = std::max(level_, rlwe::ordinary(level.needed));
  if (level.highest && !level.met()) add_name(low_[{level.needed, *level.highest}], name.c_str());
}

void KeyDemand::Missing::rotation(i64 steps, KeyLevel level) {
  needed_.insert(steps);
  note(cat(steps), level);
  if (!level.met()) missing_.insert(steps);
  if (!level.highest) absent_.insert(cat(steps));
}

void KeyDemand::Missing::key(rlwe::KeyId id, KeyLevel level) {
  aligned_ = aligned_ || rlwe::is_aligned_key(id);
  id = rlwe::plain_key(id);
  const char* name = nullptr;
  if (id == rlwe::kRelinearisation)
    name = kRelinearisation;
  else if (id == rlwe::kDenseToSparse || id == rlwe::kSparseToDense || rlwe::is_turned(id))
    name = kEncapsulation;
  else if (id == ring::galois_element_for_conjugation(log_n_))
    name = kConjugation;
  else
    return rotation(steps_of(id, log_n_), level);
  add_name(needed_keys_, name);
  note(name, level);
  if (!level.met()) add_name(missing_keys_, name);
  if (!level.highest) absent_.insert(name);
}

std::string KeyDemand::Missing::call() const {
  std::vector<std::string> arguments;
  if (!needed_.empty()) arguments.push_back(cat("rotations=[", joined(needed_), "]"));
  for (const std::string& name : needed_keys_) arguments.push_back(name + "=True");
  // Aligned keys go up to the normal levels where no level is said.
  if (!low_.empty() || aligned_) arguments.push_back(cat("max_level=", level_));
  if (aligned_) arguments.emplace_back("aligned=True");
  return cat("client.evaluation_keys(", joined(arguments), ")");
}

void KeyDemand::Missing::raise(const std::string& operation, const std::string& given) const {
  std::string message = operation + " needs ";
  if (!needed_.empty())
    message += cat(needed_.size() == 1 ? "rotation " : "rotations ", joined(needed_));
  if (!needed_keys_.empty())
    message += cat(needed_.empty() ? "" : " and ", "the keys for ", joined(needed_keys_));
  std::vector<ErrorField> fields{{"operation", operation}};
  if (aligned_) message += " for aligned levels";
  if (!missing_.empty())
    fields.push_back({"rotations", FieldValue::List(missing_.begin(), missing_.end())});
  if (!missing_keys_.empty()) fields.push_back({"key", joined(missing_keys_)});
  if (!absent_.empty() && absent_.size() != needed_.size() + needed_keys_.size()) {
    std::string lacking;
    const auto name = [&](const std::string& key) {
      if (absent_.contains(key)) lacking += cat(lacking.empty() ? "" : ", ", key);
    };
    for (i64 steps : missing_) name(cat(steps));
    for (const std::string& key : missing_keys_) name(key);
    message += ", and there is no key for " + lacking;
  }
  u32 level = 0, serves = rlwe::SwitchKey::kAny;
  for (const auto& [levels, names] : low_) {
    const u32 needed = rlwe::ordinary(levels.first), up_to = rlwe::highest_ordinary(levels.second);
    message += cat("; the key", names.size() == 1 ? " for " : "s for ", joined(names),
                   names.size() == 1 ? " serves" : " serve", " levels up to ", up_to,
                   rlwe::is_short(levels.second) ? " and a bootstrap to these" : "",
                   ", the operand is at level ", needed);
    level = std::max(level, needed), serves = std::min(serves, up_to);
  }
  if (!low_.empty()) fields.insert(fields.end(), {{"level", level}, {"max_level", serves}});
  if (given.empty()) message += " (ckks.keys_for finds those of a whole program)";
  throw KeyMissingError(message + ": " + (given.empty() ? call() : given), std::move(fields));
}

void KeyDemand::expect(const std::string& operation, const std::string& call) const {
  if (met()) return;
  Missing missing(log_n_);
  for (const Asked& asked : asked_) missing.add(asked);
  missing.raise(operation, call);
}

}  // namespace crenel::ckks
