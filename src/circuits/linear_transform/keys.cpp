#include "circuits/linear_transform/keys.h"

namespace crenel::circuits {

void require_rotations(const ckks::Evaluator::State& s, std::span<const i64> steps, u64 slots,
                       bool conjugation) {
  std::string missing;
  const auto miss = [&](const std::string& name) {
    missing += (missing.empty() ? "" : ", ") + name;
  };
  for (i64 k : steps) {
    try {
      s.rotation_element(k, slots);
    } catch (const KeyMissingError&) {
      miss(cat(k));
    }
  }
  const u64 element = ring::galois_element_for_conjugation(s.params().log_n());
  if (conjugation && !s.galois_key(element)) miss("conjugate");
  if (!missing.empty())
    throw KeyMissingError(cat("no evaluation keys for the rotations ", missing,
                              "; ask for them by evaluation_keys(rotations=[...])"),
                          {{"rotation", missing}});
}

}  // namespace crenel::circuits
