#include "ckks/key_demand.h"

#include <algorithm>

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

void add(std::vector<std::string>& names, const char* name) {
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

void KeyDemand::rotation(i64 steps, bool there) {
  needed_.insert(steps);
  if (!there) missing_.insert(steps);
}

void KeyDemand::key(rlwe::KeyId id, bool there) {
  const char* name = nullptr;
  if (id == rlwe::kRelinearisation)
    name = kRelinearisation;
  else if (id == rlwe::kDenseToSparse || id == rlwe::kSparseToDense)
    name = kEncapsulation;
  else if (id == ring::galois_element_for_conjugation(log_n_))
    name = kConjugation;
  else
    return rotation(steps_of(id, log_n_), there);
  add(needed_keys_, name);
  if (!there) add(missing_keys_, name);
}

std::string KeyDemand::call() const {
  std::vector<std::string> arguments;
  if (!needed_.empty()) arguments.push_back(cat("rotations=[", joined(needed_), "]"));
  for (const std::string& name : needed_keys_) arguments.push_back(name + "=True");
  return cat("client.evaluation_keys(", joined(arguments), ")");
}

void KeyDemand::expect(const std::string& operation, const std::string& given) const {
  if (met()) return;
  std::string message = operation + " needs ";
  if (!needed_.empty())
    message += cat(needed_.size() == 1 ? "rotation " : "rotations ", joined(needed_));
  if (!needed_keys_.empty())
    message += cat(needed_.empty() ? "" : " and ", "the keys for ", joined(needed_keys_));
  std::vector<ErrorField> fields{{"operation", operation}};
  std::string lacking;
  if (!missing_.empty()) {
    fields.push_back({"rotations", FieldValue::List(missing_.begin(), missing_.end())});
    lacking = joined(missing_);
  }
  if (!missing_keys_.empty()) {
    fields.push_back({"key", joined(missing_keys_)});
    lacking += cat(lacking.empty() ? "" : ", ", joined(missing_keys_));
  }
  if (missing_.size() + missing_keys_.size() != needed_.size() + needed_keys_.size())
    message += ", and there is no key for " + lacking;
  if (given.empty()) message += " (ckks.keys_for finds those of a whole program)";
  throw KeyMissingError(message + ": " + (given.empty() ? call() : given), std::move(fields));
}

}  // namespace crenel::ckks
