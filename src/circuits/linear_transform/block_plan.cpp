#include "circuits/linear_transform/block_plan.h"

#include <algorithm>
#include <map>
#include <set>

namespace crenel::circuits {
namespace {

// Positions of the baby and the giant step of every offset.
struct Place {
  std::size_t baby, giant;
};

std::map<u64, Place> places_of(const Bsgs& steps, std::span<const u64> offsets) {
  const std::set<u64> wanted(offsets.begin(), offsets.end());
  std::map<u64, Place> places;
  for (std::size_t g = 0; g < steps.giants.size(); ++g)
    for (std::size_t b = 0; b < steps.babies.size(); ++b) {
      const u64 offset = (steps.giants[g] + steps.babies[b]) % steps.slots;
      if (wanted.contains(offset)) places.insert({offset, {b, g}});
    }
  return places;
}

// Every number up to the last.
void fill(std::set<std::size_t>& used) {
  if (used.empty()) return;
  for (std::size_t k = 0, last = *used.rbegin(); k < last; ++k) used.insert(k);
}

// Rows of a part. As many as a launch on a GPU sums at once: parts are no more launches.
constexpr u32 kRowsTogether = 8;

// `has(r, b)`: is there a diagonal where row and baby step of a column meet?
template <class Has>
std::vector<BlockPlan::Part> parts_of(const BlockPlan::Column& column, const Has& has) {
  const auto rows = static_cast<u32>(column.rows.size());
  const auto babies = static_cast<u32>(column.babies.size());
  BlockPlan::Part whole;
  for (u32 r = 0; r < rows; ++r) whole.rows.push_back(r);
  for (u32 b = 0; b < babies; ++b) whole.babies.push_back(b);
  std::vector<BlockPlan::Part> parts;
  u64 places = 0, met = 0;
  for (u32 first = 0; first < rows; first += kRowsTogether) {
    BlockPlan::Part part;
    for (u32 r = first; r < std::min(first + kRowsTogether, rows); ++r) part.rows.push_back(r);
    for (u32 b = 0; b < babies; ++b)
      if (std::ranges::any_of(part.rows, [&](u32 r) { return has(r, b); }))
        part.babies.push_back(b);
    if (part.babies.empty()) part.babies.push_back(0);  // somebody has to write its zeros
    places += part.rows.size() * part.babies.size();
    met += part.babies.size();
    parts.push_back(std::move(part));
  }
  // A baby step that several parts need meets its key in each of them.
  if (2 * places > u64(rows) * babies || met > babies + rows / kRowsTogether) return {whole};
  return parts;
}

using Used = std::vector<std::vector<std::set<std::size_t>>>;  // by output and input

}  // namespace

u64 BlockPlan::sums_of(u32 output) const {
  std::set<u32> found;
  for (const Column& column : columns)
    for (u32 r : column.rows)
      if (rows[r].output == output) found.insert(r);
  return found.size();
}

BlockPlan plan_blocks(const BlockPointers& blocks, std::span<const u64> offsets, u64 slots,
                      u64 baby_steps, KeyMode keys) {
  const std::size_t outputs = blocks.size(), inputs = blocks[0].size();
  BlockPlan plan;
  plan.steps = plan_bsgs(offsets, slots, baby_steps, keys, {inputs, outputs});
  plan.outputs = static_cast<u32>(outputs);
  const auto places = places_of(plan.steps, offsets);
  Used giants(outputs, std::vector<std::set<std::size_t>>(inputs));
  std::vector<std::set<std::size_t>> babies(inputs), last(outputs);
  for (std::size_t o = 0; o < outputs; ++o)
    for (std::size_t i = 0; i < inputs; ++i) {
      if (blocks[o][i] == nullptr) continue;
      plan.diagonals += blocks[o][i]->diagonals.size();
      for (const auto& [offset, values] : blocks[o][i]->diagonals) {
        const Place& at = places.at(offset);
        babies[i].insert(at.baby);
        giants[o][i].insert(at.giant);
        last[o].insert(at.giant);
      }
    }
  if (keys == KeyMode::minimal) {
    for (auto& used : babies) fill(used);
    for (std::size_t o = 0; o < outputs; ++o) {
      fill(last[o]);
      for (std::size_t i = 0; i < inputs; ++i)
        if (blocks[o][i] != nullptr) giants[o][i] = last[o];
    }
  }
  std::map<std::pair<std::size_t, std::size_t>, u32> row_of;  // by giant step and output
  const auto add_row = [&](std::size_t g, u64 giant, std::size_t o) {
    row_of[{g, o}] = static_cast<u32>(plan.rows.size());
    plan.rows.push_back({static_cast<u32>(o), giant});
  };
  const bool zero = plan.steps.giants[0] == 0;
  // Without giant step 0 nobody finds the accumulators by it.
  const std::size_t nowhere = plan.steps.giants.size();
  for (std::size_t o = 0; o < outputs; ++o) add_row(zero ? 0 : nowhere, 0, o);
  for (std::size_t g = zero ? 1 : 0; g < plan.steps.giants.size(); ++g)
    for (std::size_t o = 0; o < outputs; ++o)
      if (last[o].contains(g)) add_row(g, plan.steps.giants[g], o);
  for (std::size_t i = 0; i < inputs; ++i) {
    BlockPlan::Column column;
    for (std::size_t b : babies[i]) column.babies.push_back(plan.steps.babies[b]);
    for (std::size_t o = 0; o < outputs; ++o)
      for (std::size_t g : giants[o][i]) column.rows.push_back(row_of.at({g, o}));
    std::ranges::sort(column.rows);
    column.parts = parts_of(column, [&](u32 r, u32 b) {
      const BlockRow& row = plan.rows[column.rows[r]];
      return blocks[row.output][i]->diagonals.contains((row.giant + column.babies[b]) % slots);
    });
    plan.columns.push_back(std::move(column));
  }
  return plan;
}

}  // namespace crenel::circuits
