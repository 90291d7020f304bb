#include "ckks/params/base_conversion.h"

#include <algorithm>
#include <map>
#include <utility>

namespace crenel::ckks {

std::vector<u64> chain_in_position_order(const Spec& spec) {
  std::vector<u64> chain(spec.terminal.rbegin(), spec.terminal.rend());
  chain.insert(chain.end(), spec.main.begin(), spec.main.end());
  return chain;
}

std::vector<DigitGroup> digit_groups(const Spec& spec, u32 alpha) {
  std::map<std::pair<u32, u32>, DigitGroup> groups;
  const u32 terminals = static_cast<u32>(spec.terminal.size());
  for (const LevelModulus& level : spec.levels) {
    const u32 low = terminals - level.terminal, high = terminals + level.main;
    for (u32 block = low / alpha * alpha; block < high; block += alpha) {
      const u32 begin = std::max(block, low), end = std::min(block + alpha, high);
      const auto [it, fresh] = groups.try_emplace({begin, end}, DigitGroup{begin, end, low, high});
      it->second.window_begin = std::min(it->second.window_begin, low);
      it->second.window_end = std::max(it->second.window_end, high);
    }
  }
  std::vector<DigitGroup> list;
  for (const auto& [key, group] : groups) list.push_back(group);
  return list;
}

u128 conversion_bound(std::span<const u64> sources, u64 target) {
  // (D / d_j) mod p without divisions: the product of the sources before j times that of those
  // after.
  std::vector<u64> before(sources.size() + 1, 1 % target);
  const auto mul = [target](u64 a, u64 b) {
    return static_cast<u64>(static_cast<u128>(a) * b % target);
  };
  for (std::size_t j = 0; j < sources.size(); ++j)
    before[j + 1] = mul(before[j], sources[j] % target);
  u128 sum = target;
  u64 after = 1 % target;
  for (std::size_t j = sources.size(); j-- > 0;) {
    sum += static_cast<u128>(mul(before[j], after)) * (sources[j] - 1);
    after = mul(after, sources[j] % target);
  }
  return sum;
}

}  // namespace crenel::ckks
