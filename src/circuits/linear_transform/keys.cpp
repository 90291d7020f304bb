#include "circuits/linear_transform/keys.h"

namespace crenel::circuits {

std::vector<i64> missing_rotations(const ckks::Evaluator::State& s, std::span<const i64> steps,
                                   u64 slots) {
  std::vector<i64> missing;
  for (i64 k : steps) {
    try {
      s.rotation_element(k, slots);
    } catch (const KeyMissingError&) {
      missing.push_back(k);
    }
  }
  return missing;
}

void require_rotations(const ckks::Evaluator::State& s, std::span<const i64> steps, u64 slots) {
  std::string names;
  for (i64 k : missing_rotations(s, steps, slots)) names += (names.empty() ? "" : ", ") + cat(k);
  if (!names.empty())
    throw KeyMissingError(cat("no evaluation keys for the rotations ", names,
                              "; ask for them by evaluation_keys(rotations=[...])"),
                          {{"rotation", names}});
}

}  // namespace crenel::circuits
