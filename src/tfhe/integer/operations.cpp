#include "tfhe/integer/operations.h"

#include <algorithm>

#include "tfhe/integer/carries.h"

namespace crenel::tfhe::radix {
namespace {

u32 count_of(const Blocks& blocks) { return static_cast<u32>(blocks.size()); }

// a_j + (3 - b_j): columns of a + not b, in [0, 6]; above 3 where a_j > b_j, 3 where equal.
Sum difference_column(const Sum& a, const Sum& b) { return a - b + 3; }

Sum equal_blocks(Circuit& circuit, const Blocks& a, const Blocks& b, bool negate, u64 one) {
  Blocks differ;
  for (u32 j = 0; j < count_of(a); ++j)
    differ.push_back(
        circuit.look_up(difference_column(a[j], b[j]), [](u64 v) { return u64(v != 3); }));
  // 15 flags fit a message
  while (differ.size() >= kMessages) {
    Blocks fewer;
    for (std::size_t i = 0; i < differ.size(); i += kMessages - 1) {
      Sum sum;
      for (std::size_t j = i; j < std::min<std::size_t>(i + kMessages - 1, differ.size()); ++j)
        sum = sum + differ[j];
      fewer.push_back(circuit.look_up(sum, [](u64 v) { return u64(v != 0); }));
    }
    differ = std::move(fewer);
  }
  Sum sum;
  for (const Sum& flag : differ) sum = sum + flag;
  return circuit.look_up(sum, [=](u64 v) { return (v == 0) != negate ? one : 0; });
}

// 1 where a > b, or a >= b with `or_equal`: the carry out of a + not b + or_equal. The top blocks
// of signed integers compare with their sign bits flipped, both in one message.
Sum greater_blocks(Circuit& circuit, const Blocks& a, const Blocks& b, bool or_equal,
                   bool is_signed, u64 one) {
  std::vector<Stage> stages;
  for (u32 j = 0; j < count_of(a); ++j)
    stages.push_back(column_stage(difference_column(a[j], b[j])));
  if (is_signed)
    stages.back() = {4 * a.back() + b.back(), [](u64 v) -> u64 {
                       const u64 x = (v >> 2) ^ 2, y = (v & 3) ^ 2;
                       return x > y ? 2 : x == y ? 1 : 0;
                     }};
  // the first block sees no other: its state and `or_equal` make a carry at once
  const Stage first = stages.front();
  stages.erase(stages.begin());
  const u64 least = or_equal ? 1 : 2, bit = stages.empty() ? one : 1;
  const Sum carry =
      circuit.look_up(first.value, [&](u64 v) { return first.state(v) >= least ? bit : 0; });
  return carry_out(circuit, carry, std::move(stages), one);
}

// Digits of factor in {-1, 0, 1, 2} modulo 4^count, least significant first.
std::vector<i64> signed_digits(u64 factor, u32 count) {
  std::vector<i64> digits;
  u64 carry = 0;
  for (u32 j = 0; j < count; ++j) {
    const u64 digit = (factor >> (2 * j) & 3) + carry;
    carry = digit >= 3 ? 1 : 0;
    digits.push_back(static_cast<i64>(digit) - (carry ? 4 : 0));
  }
  return digits;
}

}  // namespace

Blocks constant_blocks(u64 value, u32 bits) {
  Blocks blocks;
  for (u32 j = 0; j < bits; j += 2) blocks.push_back(Sum(static_cast<i64>(value >> j & 3)));
  return blocks;
}

Blocks add(Circuit& circuit, const Blocks& a, const Blocks& b) {
  Blocks columns;
  for (u32 j = 0; j < count_of(a); ++j) columns.push_back(a[j] + b[j]);
  return propagate(circuit, columns);
}

Blocks subtract(Circuit& circuit, const Blocks& a, const Blocks& b) {
  Blocks columns;
  for (u32 j = 0; j < count_of(a); ++j) columns.push_back(difference_column(a[j], b[j]));
  columns[0] = columns[0] + 1;
  return propagate(circuit, columns);
}

Blocks multiply(Circuit& circuit, const Blocks& a, const Blocks& b) {
  const u32 n = count_of(a);
  std::vector<Blocks> terms(n);
  for (u32 i = 0; i < n; ++i) {
    for (u32 j = 0; i + j < n; ++j) {
      const Sum both = 4 * a[i] + b[j];
      terms[i + j].push_back(circuit.look_up(both, [](u64 v) { return (v >> 2) * (v & 3) & 3; }));
      if (i + j + 1 < n)
        terms[i + j + 1].push_back(
            circuit.look_up(both, [](u64 v) { return (v >> 2) * (v & 3) >> 2; }));
    }
  }
  return add_columns(circuit, std::move(terms));
}

Blocks multiply(Circuit& circuit, const Blocks& a, u64 factor, u32 bits) {
  const u32 n = count_of(a);
  std::vector<Blocks> terms(n);
  const std::vector<i64> digits = signed_digits(factor, n);
  u64 correction = 0;
  for (u32 j = 0; j < n; ++j) {
    if (digits[j] == 0) continue;
    for (u32 i = 0; i + j < n; ++i) {
      // -a = (3 - a) - 3
      terms[i + j].push_back(digits[j] > 0 ? digits[j] * a[i] : 3 - a[i]);
      if (digits[j] < 0) correction -= u64(3) << (2 * (i + j));
    }
  }
  const Blocks constants = constant_blocks(correction, bits);
  for (u32 j = 0; j < n; ++j)
    if (constants[j].constant != 0) terms[j].push_back(constants[j]);
  return add_columns(circuit, std::move(terms));
}

Sum compare(Circuit& circuit, Comparison comparison, const Blocks& a, const Blocks& b,
            bool is_signed, u64 one) {
  switch (comparison) {
    case Comparison::equal:
      return equal_blocks(circuit, a, b, false, one);
    case Comparison::not_equal:
      return equal_blocks(circuit, a, b, true, one);
    case Comparison::less:
      return greater_blocks(circuit, b, a, false, is_signed, one);
    case Comparison::less_equal:
      return greater_blocks(circuit, b, a, true, is_signed, one);
    case Comparison::greater:
      return greater_blocks(circuit, a, b, false, is_signed, one);
    case Comparison::greater_equal:
      break;
  }
  return greater_blocks(circuit, a, b, true, is_signed, one);
}

Blocks select(Circuit& circuit, const Sum& condition, const Blocks& a, const Blocks& b) {
  Blocks out;
  for (u32 j = 0; j < count_of(a); ++j) {
    // 3 + (condition ? a - b : 0), then b again; the second look-up removes b's noise
    const Sum step = circuit.look_up(difference_column(a[j], b[j]) + condition,
                                     [](u64 v) { return v >= kCondition ? v - kCondition : 3; });
    out.push_back(circuit.look_up((step + b[j] - 3).within(0, 3), [](u64 v) { return v; }));
  }
  return out;
}

Blocks shift_left(Circuit& circuit, const Blocks& a, u32 count) {
  const u32 n = count_of(a), whole = count / 2;
  const auto block = [&](i64 j) { return j < 0 ? Sum(0) : a[static_cast<std::size_t>(j)]; };
  Blocks out;
  for (u32 j = 0; j < n; ++j) {
    const i64 from = i64(j) - i64(whole);
    if (count % 2 == 0)
      out.push_back(block(from));
    else
      out.push_back(circuit.look_up(4 * block(from) + block(from - 1),
                                    [](u64 v) { return (v >> 2 << 1 & 3) | (v & 3) >> 1; }));
  }
  return out;
}

Blocks shift_right(Circuit& circuit, const Blocks& a, u32 count, bool is_signed) {
  const u32 n = count_of(a), whole = count / 2;
  // only asked for above the top: folds to 0 or one look-up
  const auto fill = [&] {
    return is_signed ? circuit.look_up(a[n - 1], [](u64 v) -> u64 { return v >= 2 ? 3 : 0; })
                     : Sum(0);
  };
  Blocks out;
  for (u32 j = 0; j < n; ++j) {
    const u32 from = j + whole;
    if (from >= n) {
      out.push_back(fill());
    } else if (count % 2 == 0) {
      out.push_back(a[from]);
    } else if (from + 1 < n) {
      out.push_back(circuit.look_up(4 * a[from + 1] + a[from],
                                    [](u64 v) { return (v >> 2 & 1) << 1 | (v & 3) >> 1; }));
    } else {
      out.push_back(
          circuit.look_up(a[from], [&](u64 v) { return v >> 1 | (is_signed ? v & 2 : 0); }));
    }
  }
  return out;
}

Blocks blockwise(Circuit& circuit, const Blocks& a, const Blocks& b,
                 const std::function<u64(u64, u64)>& f) {
  Blocks out;
  for (u32 j = 0; j < count_of(a); ++j)
    out.push_back(circuit.look_up(4 * a[j] + b[j], [&](u64 v) { return f(v >> 2, v & 3); }));
  return out;
}

Blocks bit_not(const Blocks& a) {
  Blocks out;
  for (const Sum& block : a) out.push_back(3 - block);
  return out;
}

}  // namespace crenel::tfhe::radix
