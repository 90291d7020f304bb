#include "circuits/linear_transform/keys.h"

namespace crenel::circuits {

std::vector<i64> missing_rotations(const ckks::Evaluator::State& s, std::span<const i64> steps,
                                   u64 slots) {
  std::vector<i64> missing;
  for (i64 k : steps)
    if (s.find_rotation(k, slots) == 0) missing.push_back(k);
  return missing;
}

void require_rotations(const ckks::Evaluator::State& s, std::span<const i64> steps, u64 slots) {
  s.rotation_elements(steps, slots, "linear_transform");
}

}  // namespace crenel::circuits
