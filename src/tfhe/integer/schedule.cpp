#include "tfhe/integer/schedule.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace crenel::tfhe::radix {
namespace {

// Outputs that a rotation has room for, whose argument is at most `high`, or negative.
u32 room(i64 low, i64 high) { return low < 0 ? 1 : high <= 3 ? 4 : high <= 7 ? 2 : 1; }

class Sharing {
 public:
  Sharing(const Circuit& circuit, const Blocks& outputs) : circuit_(circuit) {
    const std::vector<bool> needed = needed_for(outputs);
    // nodes of one argument, in the order in which the circuit made them
    std::vector<std::vector<u32>> equal;
    std::unordered_multimap<u64, std::size_t> known;
    for (u32 i = 0; i < circuit.nodes().size(); ++i) {
      const Circuit::Node& node = circuit.nodes()[i];
      if (node.round == 0 || !needed[i]) continue;
      const u64 hash = node.argument.hash();
      const auto [first, last] = known.equal_range(hash);
      const auto same = std::find_if(first, last, [&](const auto& one) {
        return circuit.nodes()[equal[one.second][0]].argument.same_value(node.argument);
      });
      if (same != last) {
        equal[same->second].push_back(i);
      } else {
        known.emplace(hash, equal.size());
        equal.push_back({i});
      }
    }
    group_.resize(circuit.nodes().size(), 0);
    for (const std::vector<u32>& nodes : equal) {
      const auto [low, high] = range_of(nodes);
      const u32 most = room(low, high);
      for (std::size_t first = 0; first < nodes.size(); first += most) {
        ++groups_;
        for (std::size_t i = first; i < std::min<std::size_t>(first + most, nodes.size()); ++i)
          group_[nodes[i]] = groups_;
      }
    }
  }

  /// Dissolves groups of which several nodes are in a sum that is too noisy with them, or are
  /// `outputs`.
  void separate(const Blocks& outputs) {
    std::set<u32> apart;
    for (u32 i = 0; i < group_.size(); ++i)
      if (group_[i] != 0) separate(circuit_.nodes()[i].argument, circuit_.max_norm2(), apart);
    std::map<u32, std::set<u32>> exposed;
    for (const Sum& sum : outputs)
      for (const auto& [node, factor] : sum.terms)
        if (group_[node] != 0) exposed[group_[node]].insert(node);
    for (const auto& [group, nodes] : exposed)
      if (nodes.size() > 1) apart.insert(group);
    for (u32& group : group_)
      if (apart.contains(group)) group = ++groups_;  // 0 is in no group
  }

  Schedule schedule(Calls calls) const {
    Schedule plan;
    plan.rounds.resize(circuit_.rounds() + 1);
    std::vector<std::vector<u32>> members(groups_ + 1);
    for (u32 i = 0; i < group_.size(); ++i)
      if (group_[i] != 0) members[group_[i]].push_back(i);
    for (auto& nodes : members) {
      if (nodes.empty()) continue;
      const u32 outputs = nodes.size() == 1 ? 1 : nodes.size() == 2 ? 2 : 4;
      const u32 round = circuit_.nodes()[nodes[0]].round;
      plan.rounds[round].push_back({std::move(nodes), outputs, outputs});
    }
    while (plan.rounds.size() > 1 && plan.rounds.back().empty()) plan.rounds.pop_back();
    for (auto& round : plan.rounds) {
      if (calls == Calls::filled) fill_calls(round);
      u32 most = 1;
      for (const Rotation& rotation : round) most = std::max(most, rotation.outputs);
      for (Rotation& rotation : round)
        rotation.call_outputs = calls == Calls::one ? most : rotation.outputs;
    }
    return plan;
  }

 private:
  // What nothing reads is not computed: half of a division, say.
  std::vector<bool> needed_for(const Blocks& outputs) const {
    std::vector<bool> needed(circuit_.nodes().size(), false);
    const auto mark = [&](const Sum& sum) {
      for (const auto& [node, factor] : sum.terms) needed[node] = true;
    };
    for (const Sum& output : outputs) mark(output);
    for (std::size_t i = needed.size(); i-- > 0;)  // arguments come before their nodes
      if (needed[i]) mark(circuit_.nodes()[i].argument);
    return needed;
  }

  // Rotations with `from` outputs get `to`, where all of them have the room and there are such.
  void fill_calls(std::vector<Rotation>& round) const {
    constexpr std::array<std::array<u32, 2>, 3> kSteps{{{1, 4}, {2, 4}, {1, 2}}};
    for (const auto& step : kSteps) {
      const u32 from = step[0], to = step[1];
      const bool wanted = std::any_of(round.begin(), round.end(),
                                      [&](const Rotation& r) { return r.outputs == to; });
      const bool fit = std::all_of(round.begin(), round.end(), [&](const Rotation& r) {
        const auto [low, high] = range_of(r.nodes);
        return r.outputs != from || room(low, high) >= to;
      });
      if (!wanted || !fit) continue;
      for (Rotation& r : round)
        if (r.outputs == from) r.outputs = to;
    }
  }

  std::pair<i64, i64> range_of(const std::vector<u32>& nodes) const {
    i64 low = 0, high = 0;
    for (const u32 i : nodes) {
      low = std::min(low, circuit_.nodes()[i].argument.low);
      high = std::max(high, circuit_.nodes()[i].argument.high);
    }
    return {low, high};
  }

  void separate(const Sum& sum, double limit, std::set<u32>& apart) const {
    std::map<u32, std::pair<u32, double>> joint;  // nodes, and their factors' sum
    double norm2 = 0;
    for (const auto& [node, factor] : sum.terms) {
      const auto f = static_cast<double>(factor < 0 ? -factor : factor);
      if (group_[node] == 0) {
        norm2 += f * f;
      } else {
        auto& [count, total] = joint[group_[node]];
        ++count, total += f;
      }
    }
    for (const auto& [group, part] : joint) norm2 += part.second * part.second;
    if (norm2 <= limit) return;
    for (const auto& [group, part] : joint)
      if (part.first > 1) apart.insert(group);
  }

  const Circuit& circuit_;
  std::vector<u32> group_;  ///< of each node, 0 for inputs
  u32 groups_ = 0;
};

}  // namespace

u64 Schedule::rotations() const {
  u64 count = 0;
  for (const auto& round : rounds) count += round.size();
  return count;
}

u64 Schedule::outputs() const {
  u64 count = 0;
  for (const auto& round : rounds)
    for (const Rotation& rotation : round) count += rotation.outputs;
  return count;
}

Shape Schedule::shape() const {
  Shape shape;
  for (const auto& round : rounds) {
    auto& calls = shape.rounds.emplace_back();
    for (const Rotation& rotation : round) ++calls[call_of(rotation.call_outputs)];
  }
  return shape;
}

u64 Shape::rotations() const {
  u64 sum = 0;
  for (const auto& calls : rounds)
    for (const u64 count : calls) sum += count;
  return sum;
}

u64 Shape::turns(u64 size, u32 processors) const {
  u64 turns = 0;
  for (const auto& calls : rounds)
    for (const u64 count : calls) turns += (count * size + processors - 1) / processors;
  return turns;
}

Form choose(std::span<const std::shared_ptr<const Shape>, kFormCount> shapes, u64 size,
            u32 processors) {
  const auto cost = [&](Form form) {
    const Shape& shape = *shapes[index_of(form)];
    return std::pair(shape.turns(size, processors), shape.rotations());
  };
  Form best = kAllForms[0];
  for (const Form form : kAllForms)
    if (cost(form) < cost(best)) best = form;
  return best;
}

Room Room::of(const Params& params) { return {params.spec().max_norm2, params.spec().group != 0}; }

u64 Program::bytes() const {
  u64 sum = sizeof *this + circuit.bytes() + outputs.capacity() * sizeof(Sum);
  for (const Sum& output : outputs) sum += output.heap_bytes();
  for (const auto& round : plan.rounds) {
    sum += sizeof(std::vector<Rotation>) + round.capacity() * sizeof(Rotation);
    for (const Rotation& rotation : round) sum += rotation.nodes.capacity() * sizeof(u32);
  }
  return sum;
}

Schedule schedule(const Circuit& circuit, const Blocks& outputs, Calls calls) {
  Sharing sharing(circuit, outputs);
  sharing.separate(outputs);
  return sharing.schedule(calls);
}

}  // namespace crenel::tfhe::radix
