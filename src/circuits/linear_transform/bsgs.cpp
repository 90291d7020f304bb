#include "circuits/linear_transform/bsgs.h"

#include <algorithm>
#include <bit>
#include <cmath>
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

// The power of two in the stride, and how many multiples of the stride there are.
u64 even_part(u64 stride, u64 slots) { return std::gcd(stride, slots); }
u64 multiples_of(u64 stride, u64 slots) { return slots / even_part(stride, slots); }

// j with offset = j stride modulo slots, below multiples_of(stride, slots), of every offset.
std::vector<u64> indices_of(std::span<const u64> offsets, u64 slots, u64 stride) {
  const u64 even = even_part(stride, slots), count = slots / even, odd = stride / even;
  u64 inverse = 1;  // of the odd part, modulo 2^64: every step doubles the bits that are right
  for (int step = 0; step < 6; ++step) inverse *= 2 - odd * inverse;
  std::vector<u64> indices;
  for (u64 k : offsets) indices.push_back(k / even * inverse & (count - 1));
  return indices;
}

// 0, step, 2 step, ... up to the last member.
void fill(std::vector<u64>& used, u64 step) {
  const u64 last = used.back();
  used.clear();
  for (u64 k = 0; k <= last; k += step) used.push_back(k);
}

void sort_unique(std::vector<u64>& v) {
  std::ranges::sort(v);
  v.erase(std::unique(v.begin(), v.end()), v.end());
}

// In units of the stride.
struct Steps {
  std::vector<u64> babies, giants;
};

Steps steps_of(std::span<const u64> indices, u64 baby_steps, KeyMode keys) {
  Steps steps;
  for (u64 j : indices) {
    steps.babies.push_back(j % baby_steps);
    steps.giants.push_back(j - j % baby_steps);
  }
  sort_unique(steps.babies), sort_unique(steps.giants);
  if (keys == KeyMode::minimal) fill(steps.babies, 1), fill(steps.giants, baby_steps);
  return steps;
}

// A hoisted baby step is one product with a key; a giant step is a division by P, a decomposition
// and that product: about five times as long (H200 and CPU). Step 0 is free.
struct Weights {
  u64 baby, giant;
  Weights(KeyMode keys, const BlockCount& blocks)
      : baby(blocks.inputs), giant(blocks.outputs * (keys == KeyMode::hoisted ? 5 : 1)) {}

  u64 cost(const Steps& steps) const {
    return baby * (steps.babies.size() - 1) + giant * (steps.giants.size() - 1);
  }
  /// Of any split of so many offsets, were every pair of a baby and a giant step one of them.
  double least_cost(std::size_t offsets) const {
    const double b = static_cast<double>(baby), g = static_cast<double>(giant);
    return 2.0 * std::sqrt(b * g * static_cast<double>(offsets)) - b - g;
  }
};

struct Split {
  u64 stride = 1, baby_steps = 1, cost = 0;
  Steps steps;
};

// Offsets by steps of `stride`, `baby_steps` of them a giant step; 0: as many as cost least.
Split best_split(std::span<const u64> offsets, u64 slots, u64 stride, u64 baby_steps, KeyMode keys,
                 const Weights& weights) {
  const std::vector<u64> indices = indices_of(offsets, slots, stride);
  const auto with = [&](u64 count) {
    Steps steps = steps_of(indices, count, keys);
    const u64 cost = weights.cost(steps);
    return Split{stride, count, cost, std::move(steps)};
  };
  if (baby_steps != 0) return with(baby_steps);
  Split best;
  for (u64 count = 1; count <= multiples_of(stride, slots); count *= 2) {
    Split split = with(count);
    if (best.steps.babies.empty() || split.cost <= best.cost) best = std::move(split);
  }
  return best;
}

// Strides that are no power of two and may be that of the offsets, which are multiples modulo the
// slots: what divides them all on both sides of 0, and those next to 0 themselves. A transpose of
// d x d values has the offsets (d - 1) j, |j| < d.
std::set<u64> odd_strides(std::span<const u64> offsets, u64 slots, u64 even) {
  constexpr std::size_t kNearest = 8;
  std::set<u64> strides, nearest;
  u64 common = 0;
  for (u64 k : offsets) {
    const u64 distance = std::min(k, slots - k);
    common = std::gcd(common, distance);
    if ((distance / even) % 2 == 0) continue;
    nearest.insert(distance);
    if (nearest.size() > kNearest) nearest.erase(std::prev(nearest.end()));
  }
  strides.insert(common);
  strides.merge(nearest);
  strides.erase(even), strides.erase(0);
  return strides;
}

}  // namespace

Bsgs plan_bsgs(std::span<const u64> offsets, u64 slots, u64 baby_steps, KeyMode keys,
               const BlockCount& blocks) {
  check(offsets, slots, baby_steps);
  u64 even = slots;  // every offset is a multiple
  for (u64 k : offsets) even = std::gcd(even, k);
  baby_steps = std::min(baby_steps, slots);  // more than there are offsets is as many as there are
  const Weights weights(keys, blocks);
  Split best = best_split(offsets, slots, even, baby_steps, keys, weights);
  // Dense sets are split well by any stride; to look at others costs as much as the first.
  constexpr std::size_t kMostOffsets = 4096;
  const double enough = 1.5 * weights.least_cost(offsets.size());
  if (offsets.size() <= kMostOffsets && static_cast<double>(best.cost) > enough)
    for (u64 stride : odd_strides(offsets, slots, even)) {
      Split split = best_split(offsets, slots, stride, baby_steps, keys, weights);
      if (split.cost < best.cost) best = std::move(split);
    }
  Bsgs plan{slots, best.stride, best.baby_steps, {}, {}, {}};
  for (u64 j : best.steps.babies) plan.babies.push_back(j * best.stride % slots);
  for (u64 j : best.steps.giants) plan.giants.push_back(j * best.stride % slots);
  std::set<i64> rotations;
  if (keys == KeyMode::minimal) {
    if (plan.babies.size() > 1) rotations.insert(static_cast<i64>(plan.babies[1]));
    if (plan.giants.size() > 1) rotations.insert(static_cast<i64>(plan.giants[1]));
  } else {
    for (const auto* steps : {&plan.babies, &plan.giants})
      for (u64 k : *steps)
        if (k != 0) rotations.insert(static_cast<i64>(k));
  }
  plan.rotations.assign(rotations.begin(), rotations.end());
  return plan;
}

std::vector<i64> linear_transform_rotations(std::span<const u64> offsets, u64 slots, u64 baby_steps,
                                            KeyMode keys, u64 inputs, u64 outputs) {
  for (const auto& [name, count] : {std::pair("inputs", inputs), std::pair("outputs", outputs)})
    if (count == 0 || count > kMostBlocks)
      throw ParameterError(cat(count, " ", name, ", expected 1 to ", kMostBlocks),
                           {{name, count}, {"expected", kMostBlocks}});
  return plan_bsgs(offsets, slots, baby_steps, keys, {inputs, outputs}).rotations;
}

}  // namespace crenel::circuits
