#include "circuits/linear_transform/bsgs.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

#include "crenel/core/error.h"

namespace crenel::circuits {
namespace {

void check(std::span<const u64> offsets, u64 slots, u64 baby_steps) {
  if (!std::has_single_bit(slots))
    throw ParameterError(cat("linear transform of ", slots, " slots, expected a power of two"),
                         {{"slots", slots}});
  if (offsets.empty())
    throw ParameterError("linear transform without a diagonal, expected at least one",
                         {{"count", 0}});
  for (u64 k : offsets)
    if (k >= slots)
      throw ParameterError(cat("diagonal offset ", k, ", expected below ", slots, " (the slots)"),
                           {{"offset", k}, {"slots", slots}});
  if (baby_steps != 0 && !std::has_single_bit(baby_steps))
    throw ParameterError(cat(baby_steps, " baby steps, expected a power of two"),
                         {{"baby_steps", baby_steps}});
}

// 0, step, 2 step, ... up to the last member.
std::vector<u64> filled(const std::set<u64>& used, u64 step) {
  std::vector<u64> all;
  for (u64 k = 0; k <= *used.rbegin(); k += step) all.push_back(k);
  return all;
}

Bsgs split(std::span<const u64> offsets, u64 slots, u64 stride, u64 baby_steps, KeyMode keys) {
  const u64 giant = stride * baby_steps;
  std::set<u64> babies, giants;
  for (u64 k : offsets) babies.insert(k % giant), giants.insert(k - k % giant);
  Bsgs plan{slots, stride, baby_steps, {}, {}, {}};
  std::set<i64> rotations;
  if (keys == KeyMode::minimal) {
    plan.babies = filled(babies, stride), plan.giants = filled(giants, giant);
    if (plan.babies.size() > 1) rotations.insert(static_cast<i64>(stride));
    if (plan.giants.size() > 1) rotations.insert(static_cast<i64>(giant));
  } else {
    plan.babies.assign(babies.begin(), babies.end());
    plan.giants.assign(giants.begin(), giants.end());
    for (const auto* steps : {&plan.babies, &plan.giants})
      for (u64 k : *steps)
        if (k != 0) rotations.insert(static_cast<i64>(k));
  }
  plan.rotations.assign(rotations.begin(), rotations.end());
  return plan;
}

}  // namespace

Bsgs plan_bsgs(std::span<const u64> offsets, u64 slots, u64 baby_steps, KeyMode keys) {
  check(offsets, slots, baby_steps);
  u64 stride = slots;  // every offset is a multiple
  for (u64 k : offsets) stride = std::gcd(stride, k);
  // More than there are offsets is as many as there are.
  if (baby_steps != 0) return split(offsets, slots, stride, std::min(baby_steps, slots), keys);
  // A hoisted baby step is one product with a key; a giant step is a division by P, a decomposition
  // and that product: about five times as long (H200 and CPU). Step 0 is free.
  const u64 weight = keys == KeyMode::hoisted ? 5 : 1;
  const auto cost = [weight](const Bsgs& p) {
    return p.babies.size() - 1 + weight * (p.giants.size() - 1);
  };
  Bsgs best;
  for (u64 bs = 1; bs * stride <= slots; bs *= 2) {
    Bsgs plan = split(offsets, slots, stride, bs, keys);
    if (best.babies.empty() || cost(plan) <= cost(best)) best = std::move(plan);
  }
  return best;
}

std::vector<i64> linear_transform_rotations(std::span<const u64> offsets, u64 slots, u64 baby_steps,
                                            KeyMode keys) {
  return plan_bsgs(offsets, slots, baby_steps, keys).rotations;
}

}  // namespace crenel::circuits
