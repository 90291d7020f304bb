#include "circuits/linear_transform/keys.h"

namespace crenel::circuits {

std::vector<i64> missing_rotations(const ckks::Evaluator::State& s, std::span<const i64> steps,
                                   u64 slots, u32 level) {
  std::vector<i64> missing;
  for (i64 k : steps)
    if (s.find_rotation(k, slots, level) == 0) missing.push_back(k);
  return missing;
}

void require_rotations(const ckks::Evaluator::State& s, std::span<const i64> steps, u64 slots,
                       u32 level) {
  s.rotation_elements(steps, slots, level, "linear_transform");
}

}  // namespace crenel::circuits
