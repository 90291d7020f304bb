#include "tfhe/integer/bits.h"

#include <algorithm>
#include <bit>

#include "tfhe/integer/carries.h"

namespace crenel::tfhe::radix {
namespace {

// Flags 0 or 4 of the bits of a count, and of its being beyond them.
struct Count {
  Blocks stages;
  Sum beyond;
};

Count bits_of(Circuit& circuit, const Blocks& count, u32 stages) {
  Count bits;
  Blocks rest;
  for (u32 k = 0; k < 2 * count_of(count); ++k) {
    const u32 at = k % 2;
    if (k < stages)
      bits.stages.push_back(
          circuit.look_up(count[k / 2], [=](u64 v) -> u64 { return (v >> at & 1) != 0 ? 4 : 0; }));
    else if (at == 0)
      rest.push_back(circuit.look_up(count[k / 2], [](u64 v) { return u64(v != 0); }));
    else if (k == stages)
      rest.push_back(circuit.look_up(count[k / 2], [](u64 v) { return v >> 1; }));
  }
  bits.beyond = any_of(circuit, rest, 4);
  return bits;
}

u64 stays(u64 v) { return v < 4 ? v : 0; }
u64 goes(u64 v) { return v < 4 ? 0 : v - 4; }

// By one bit where `flag` is 4: what remains in its block, and what leaves for the next one.
struct Parts {
  Blocks rest, out;
};
Parts by_one(Circuit& circuit, const Blocks& a, const Sum& flag, Direction direction) {
  const bool left = direction == Direction::left;
  Parts parts;
  for (const Sum& block : a) {
    parts.rest.push_back(circuit.look_up(flag + block, [=](u64 v) {
      return v < 4 ? v : left ? (v - 4) << 1 & 3 : (v - 4) >> 1;
    }));
    parts.out.push_back(circuit.look_up(flag + block, [=](u64 v) {
      return v < 4 ? 0 : left ? (v - 4) >> 1 : ((v - 4) & 1) << 1;
    }));
  }
  return parts;
}
Parts by_blocks(Circuit& circuit, const Blocks& a, const Sum& flag) {
  Parts parts;
  for (const Sum& block : a) {
    parts.rest.push_back(circuit.look_up(flag + block, stays));
    parts.out.push_back(circuit.look_up(flag + block, goes));
  }
  return parts;
}

// One stage: by 2^k bits where `flag` is 4, which come from `whole` blocks away. Results are sums
// of two look-ups.
Blocks stage(Circuit& circuit, const Blocks& a, const Sum& flag, u32 k, u32 whole,
             Direction direction, Fill fill, const Sum& sign) {
  const u32 n = count_of(a);
  const Parts parts = k == 0 ? by_one(circuit, a, flag, direction) : by_blocks(circuit, a, flag);
  Blocks out;
  for (u32 j = 0; j < n; ++j) {
    const u32 behind =
        direction == Direction::left ? j : n - 1 - j;  // blocks that it can come from
    Sum comes(0);
    if (fill == Fill::around || behind >= whole) {
      const u32 step = whole % n;
      comes = parts.out[direction == Direction::left ? (j + n - step) % n : (j + step) % n];
    } else if (fill == Fill::sign) {
      comes = circuit.look_up(flag + sign, [=](u64 v) -> u64 {
        return v < 5 ? 0 : k == 0 ? 2 : 3;
      });
    }
    out.push_back((parts.rest[j] + comes).within(0, 3));
  }
  return out;
}

}  // namespace

Blocks rotate(const Blocks& a, u32 count, Direction direction, Circuit& circuit) {
  const u32 n = count_of(a);
  if (direction == Direction::right) count = (2 * n - count) % (2 * n);
  const u32 whole = count / 2;
  const auto block = [&](u32 j, u32 back) { return a[(j + 2 * n - whole - back) % n]; };
  Blocks out;
  for (u32 j = 0; j < n; ++j)
    out.push_back(count % 2 == 0 ? block(j, 0)
                                 : circuit.look_up(4 * block(j, 0) + block(j, 1), [](u64 v) {
                                     return (v >> 2 << 1 & 3) | (v & 3) >> 1;
                                   }));
  return out;
}

Blocks shift(Circuit& circuit, const Blocks& a, const Blocks& count, Direction direction,
             Fill fill) {
  const u32 n = count_of(a);
  const bool around = fill == Fill::around;
  // 2^stages is at least the width; around the ends every bit of the count counts
  const u32 enough = around ? 2 * count_of(count) : static_cast<u32>(std::bit_width(2 * n - 1));
  Count bits = bits_of(circuit, count, std::min(enough, 2 * count_of(count)));
  const Sum sign = fill == Fill::sign ? sign_of(circuit, a) : Sum(0);
  const bool within = bits.beyond.is_constant() && bits.beyond.constant == 0;
  if (fill == Fill::sign && !within)  // all stages leave nothing but the sign
    for (Sum& flag : bits.stages)
      flag = circuit.look_up(flag + bits.beyond, [](u64 v) -> u64 { return v != 0 ? 4 : 0; });
  Blocks out = a;
  u32 whole = 1;  // blocks: of one bit the neighbour
  for (u32 k = 0; k < bits.stages.size(); ++k) {
    if (k > 1) whole *= 2;
    if (around) whole %= n;
    if (k == 0 || whole != 0)
      out = stage(circuit, out, bits.stages[k], k, whole, direction, fill, sign);
  }
  const Sum cleared = fill == Fill::zero ? bits.beyond : Sum(0);
  for (Sum& block : out) block = circuit.look_up(cleared + block, stays);
  return out;
}

Sum sign_of(Circuit& circuit, const Blocks& a, u64 one) {
  return circuit.look_up(a.back(), [=](u64 v) { return v >= 2 ? one : 0; });
}

Blocks flip_if(Circuit& circuit, const Sum& flag4, const Blocks& a) {
  Blocks out;
  for (const Sum& block : a)
    out.push_back(circuit.look_up(flag4 + block, [](u64 v) { return v < 4 ? v : 7 - v; }));
  return out;
}

Blocks keep_if(Circuit& circuit, const Sum& flag4, const Blocks& a) {
  Blocks out;
  for (const Sum& block : a) out.push_back(circuit.look_up(flag4 + block, goes));
  return out;
}

Blocks negate_if(Circuit& circuit, const Sum& flag4, const Sum& flag1, const Blocks& a, Form form) {
  Blocks columns = flip_if(circuit, flag4, a);
  columns[0] = columns[0] + flag1;
  return propagate(circuit, columns, form);
}

Blocks absolute(Circuit& circuit, const Blocks& a, Form form) {
  return negate_if(circuit, sign_of(circuit, a, 4), sign_of(circuit, a), a, form);
}

Blocks resized(Circuit& circuit, const Blocks& a, u32 count, bool is_signed) {
  Blocks out(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min<u32>(count, count_of(a))));
  while (count_of(out) < count) out.push_back(is_signed ? sign_of(circuit, a, 3) : Sum(0));
  return out;
}

namespace {

// Zeros before the first set bit, where blocks come in the order `from_end`; `zeros` of a block.
Blocks zeros(Circuit& circuit, const Blocks& a, const Blocks& from_end,
             const std::function<u64(u64)>& zeros_of, Form form) {
  Blocks set;
  for (const Sum& block : from_end)
    set.push_back(circuit.look_up(block, [](u64 v) { return u64(v != 0); }));
  set.pop_back();  // nothing comes after the last block
  const Blocks before = set.empty() ? Blocks() : prefix_or(circuit, set);
  std::vector<Blocks> columns(count_bits(2 * count_of(a)) / 2);
  for (u32 j = 0; j < count_of(from_end); ++j) {
    const Sum seen = j == 0 ? Sum(0) : before[j - 1];
    columns[0].push_back(circuit.look_up(4 * seen + from_end[j],
                                         [&](u64 v) -> u64 { return v < 4 ? zeros_of(v) : 0; }));
  }
  return add_columns(circuit, std::move(columns), form);
}

}  // namespace

Blocks leading_zeros(Circuit& circuit, const Blocks& a, Form form) {
  const Blocks from_top(a.rbegin(), a.rend());
  return zeros(
      circuit, a, from_top, [](u64 v) -> u64 { return v == 0   ? 2
                                                      : v == 1 ? 1
                                                               : 0; }, form);
}

Blocks trailing_zeros(Circuit& circuit, const Blocks& a, Form form) {
  return zeros(circuit, a, a, [](u64 v) -> u64 { return v == 0 ? 2 : v == 2 ? 1 : 0; }, form);
}

Blocks count_ones(Circuit& circuit, const Blocks& a, Form form) {
  std::vector<Blocks> columns(count_bits(2 * count_of(a)) / 2);
  for (u32 j = 0; j < count_of(a); j += 2) {
    const Sum two = j + 1 < count_of(a) ? 4 * a[j + 1] + a[j] : a[j];
    columns[0].push_back(
        circuit.look_up(two, [](u64 v) { return static_cast<u64>(std::popcount(v)); }));
  }
  return add_columns(circuit, std::move(columns), form);
}

}  // namespace crenel::tfhe::radix
