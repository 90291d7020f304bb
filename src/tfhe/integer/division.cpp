#include "tfhe/integer/division.h"

#include <algorithm>

#include "tfhe/integer/carries.h"

namespace crenel::tfhe::radix {
namespace {

// above[k], 0 or `one`: is any of the blocks k, k + 1, ... not 0?
Blocks above(Circuit& circuit, const Blocks& d, u64 one) {
  Blocks flags;
  for (auto block = d.rbegin(); block != d.rend(); ++block)
    flags.push_back(circuit.look_up(*block, [](u64 v) { return u64(v != 0); }));
  Blocks any = prefix_or(circuit, flags);
  std::reverse(any.begin(), any.end());
  any.push_back(Sum(0));
  for (Sum& flag : any) flag = circuit.look_up(flag, [=](u64 v) { return v * one; });
  return any;
}

// Blocks that a known divisor has; of others all, as they may be 0, and leave the whole dividend.
u32 significant(const Blocks& d) {
  const auto is_known = [](const Sum& block) { return block.is_constant(); };
  u32 count = std::all_of(d.begin(), d.end(), is_known) ? count_of(d) : 0;
  while (count > 0 && d[count - 1].constant == 0) --count;
  return count > 0 ? count : count_of(d);
}

// r -= d where that is not negative, block by block; the flag of it, 0 or `weight`. `above8`: 8
// where d is larger whatever its blocks within r.
Sum take_off(Circuit& circuit, Blocks& r, const Blocks& d, const Sum& above8, u64 weight) {
  const u32 k = count_of(r);
  Sum carry(1), taken, flag;
  Blocks left;
  for (u32 j = 0; j < k; ++j) {
    const Sum x = r[j] - (j < count_of(d) ? d[j] : Sum(0)) + 3 + carry;
    left.push_back(circuit.look_up(x, low_block));
    if (j + 1 < k) {
      carry = circuit.look_up(x, [](u64 v) { return v >> 2; });
      continue;
    }
    const auto fits = [](u64 v) { return v >= 4 && v < 8; };
    taken = circuit.look_up(x + above8, [=](u64 v) { return fits(v) ? kCondition : 0; });
    flag = circuit.look_up(x + above8, [=](u64 v) { return fits(v) ? weight : 0; });
  }
  // One look-up a block: what is taken off where the flag is set. The remainder becomes a sum
  // whose noise grows with every step until it is looked up anew.
  constexpr double kRoom = 6;  // of the other terms of its look-ups
  for (u32 j = 0; j < k; ++j) {
    const Sum off = circuit.look_up(r[j] - left[j] + 3 + taken,
                                    [](u64 v) { return v >= kCondition ? v - kCondition : 3; });
    r[j] = (r[j] - off + 3).within(0, 3);
    if (r[j].norm2() > circuit.max_norm2() - kRoom)
      r[j] = circuit.look_up(r[j], [](u64 v) { return v; });
  }
  return flag;
}

Division divide_lean(Circuit& circuit, const Blocks& a, const Blocks& d) {
  const Blocks twice = shift_left(circuit, resized(circuit, d, count_of(d) + 1, false), 1);
  const Blocks above_one = above(circuit, d, kCondition),
               above_two = above(circuit, twice, kCondition);
  const u32 most = significant(d);
  Division result;
  result.quotient.resize(a.size());
  Blocks& r = result.remainder;
  for (u32 i = count_of(a); i-- > 0;) {
    r.insert(r.begin(), a[i]);
    const u32 k = count_of(r);
    const auto flag = [&](const Blocks& flags) { return k < flags.size() ? flags[k] : Sum(0); };
    const Sum two = take_off(circuit, r, twice, flag(above_two), 2);
    const Sum one = take_off(circuit, r, d, flag(above_one), 1);
    result.quotient[i] = circuit.look_up(two + one, low_block);
    if (count_of(r) > most) r.resize(most);  // r < d
  }
  return result;
}

// One multiple of the divisor, taken off the remainder.
struct Candidate {
  Blocks columns;  // of r - m d
  Blocks carries;  // into them
  Sum fits4;       // 4 where that is not negative, else 0
};

// `above`: 1 where the multiple is larger whatever its blocks within r.
Candidate candidate(Circuit& circuit, const Blocks& r, const Blocks& multiple, const Sum& above) {
  Candidate found;
  for (u32 j = 0; j < count_of(r); ++j)
    found.columns.push_back(r[j] - (j < count_of(multiple) ? multiple[j] : Sum(0)) + 3);
  Blocks all = found.columns;
  all.push_back(3 - above);
  Spans spans(circuit, all, true);
  for (u32 j = 0; j < count_of(r); ++j) found.carries.push_back(spans.carry(j));
  found.fits4 = spans.carry(count_of(all), 4);
  return found;
}

// A remainder is four look-ups a block, too noisy for spans that begin with pairs of columns. These
// reach so many columns a round before spans of single ones do: then a round that looks the blocks
// up anew costs no time, and there are half as many states.
bool refresh_pays(const Circuit& circuit, u32 columns) {
  constexpr double kPairNorm2 = 16 + 16 + 1 + 1;
  u32 single = 1;
  while (4 * single < columns) single *= 4;
  return circuit.max_norm2() >= kPairNorm2 && single < columns && columns <= 2 * single;
}

Division divide_fast(Circuit& circuit, const Blocks& a, const Blocks& d, Form form) {
  const Blocks wide = resized(circuit, d, count_of(d) + 1, false);
  const Blocks twice = shift_left(circuit, wide, 1);
  const Blocks multiples[] = {wide, twice, add(circuit, wide, twice, form)};
  std::vector<Blocks> above_multiple;
  for (const Blocks& m : multiples) above_multiple.push_back(above(circuit, m, 1));
  const u32 most = significant(d);
  Division result;
  result.quotient.resize(a.size());
  Blocks& r = result.remainder;
  for (u32 i = count_of(a); i-- > 0;) {
    r.insert(r.begin(), a[i]);
    if (refresh_pays(circuit, count_of(r) + 1))
      for (Sum& block : r) block = circuit.look_up(block, low_block);
    std::vector<Candidate> candidates;
    Sum digit4;  // four times the quotient's block: how many of the differences are not negative
    for (u32 m = 0; m < 3; ++m) {
      const Blocks& above = above_multiple[m];
      const u32 k = count_of(r);
      candidates.push_back(
          candidate(circuit, r, multiples[m], k < above.size() ? above[k] : Sum(0)));
      digit4 = digit4 + candidates.back().fits4;
    }
    result.quotient[i] = circuit.look_up(digit4, [](u64 v) { return v >> 2; });
    // Of the candidates the last that fits is kept, by the look-up that adds its carry in.
    r.resize(std::min(count_of(r), most));
    for (u32 j = 0; j < count_of(r); ++j) {
      Sum chosen;
      for (u32 m = 0; m < 4; ++m) {
        const Sum fits = m == 0 ? Sum(4) : candidates[m - 1].fits4,
                  more = m == 3 ? Sum(0) : candidates[m].fits4;
        const Sum column =
            m == 0 ? r[j] : candidates[m - 1].columns[j] + candidates[m - 1].carries[j];
        chosen = chosen + circuit.look_up(column + 2 * (fits - more).within(0, 4),
                                          [](u64 v) { return v >= 8 ? v & 3 : 0; });
      }
      r[j] = chosen.within(0, 3);
    }
  }
  return result;
}

}  // namespace

Division divide(Circuit& circuit, const Blocks& a, const Blocks& d, Form form) {
  Division result =
      form == Form::lean ? divide_lean(circuit, a, d) : divide_fast(circuit, a, d, form);
  Blocks& r = result.remainder;
  r.resize(a.size(), Sum(0));
  for (Sum& block : r) block = circuit.look_up(block, low_block);
  return result;
}

Division divide_signed(Circuit& circuit, const Blocks& a, const Blocks& d, bool floored,
                       Form form) {
  const Sum a4 = sign_of(circuit, a, 4), a1 = sign_of(circuit, a), d4 = sign_of(circuit, d, 4);
  Blocks zero;  // flags of blocks that are not 0
  for (const Sum& block : d)
    zero.push_back(circuit.look_up(block, [](u64 v) { return u64(v != 0); }));
  const Division size = divide(circuit, negate_if(circuit, a4, a1, a, form),
                               negate_if(circuit, d4, sign_of(circuit, d), d, form), form);
  // signs differ, unless the divisor is 0
  const Sum signs = a1 + sign_of(circuit, d, 2) + none_of(circuit, zero, 4);
  const auto differ = [](u64 v) { return v == 1 || v == 2; };
  const Sum minus4 = circuit.look_up(signs, [=](u64 v) -> u64 { return differ(v) ? 4 : 0; });
  Sum minus1 = circuit.look_up(signs, [=](u64 v) { return u64(differ(v)); });
  Blocks remainder = flip_if(circuit, a4, size.remainder);
  if (floored) {
    // -(q + 1) = ~q where something is left, and the remainder moves to the divisor's side
    Blocks rest;
    for (const Sum& block : size.remainder)
      rest.push_back(circuit.look_up(block, [](u64 v) { return u64(v != 0); }));
    const Sum both = minus4 + any_of(circuit, rest);
    minus1 = circuit.look_up(both, [](u64 v) { return u64(v == 4); });
    const Sum moves = circuit.look_up(both, [](u64 v) -> u64 { return v == 5 ? 4 : 0; });
    const Blocks moved = keep_if(circuit, moves, d);
    for (std::size_t j = 0; j < remainder.size(); ++j) remainder[j] = remainder[j] + moved[j];
  }
  remainder[0] = remainder[0] + a1;
  Blocks quotient = flip_if(circuit, minus4, size.quotient);
  quotient[0] = quotient[0] + minus1;
  return {propagate(circuit, quotient, form), propagate(circuit, remainder, form)};
}

namespace {

// Of a result with one block more than the operands have.
Checked narrowed(Circuit& circuit, Blocks wide, bool is_signed) {
  const Sum top = wide.back();
  wide.pop_back();
  // signed: the block above is 0 or 3, as the sign bit below says
  const Sum overflow =
      is_signed ? circuit.look_up(4 * top + wide.back(),
                                  [](u64 v) { return u64((v >> 2) != ((v & 2) != 0 ? 3u : 0u)); })
                : circuit.look_up(top, [](u64 v) { return u64(v != 0); });
  return {std::move(wide), overflow};
}

}  // namespace

Checked checked_add(Circuit& circuit, const Blocks& a, const Blocks& b, bool is_signed, Form form) {
  const u32 wide = count_of(a) + 1;
  return narrowed(circuit,
                  add(circuit, resized(circuit, a, wide, is_signed),
                      resized(circuit, b, wide, is_signed), form),
                  is_signed);
}

Checked checked_subtract(Circuit& circuit, const Blocks& a, const Blocks& b, bool is_signed,
                         Form form) {
  const u32 wide = count_of(a) + 1;
  return narrowed(circuit,
                  subtract(circuit, resized(circuit, a, wide, is_signed),
                           resized(circuit, b, wide, is_signed), form),
                  is_signed);
}

Checked checked_multiply(Circuit& circuit, const Blocks& a, const Blocks& b, bool is_signed,
                         Form form) {
  const u32 n = count_of(a);
  Blocks wide = multiply(circuit, resized(circuit, a, 2 * n, is_signed),
                         resized(circuit, b, 2 * n, is_signed), form);
  const Blocks low(wide.begin(), wide.begin() + n);
  const Sum sign = is_signed ? sign_of(circuit, low, 4) : Sum(0);
  Blocks wrong;
  for (u32 j = n; j < 2 * n; ++j)
    wrong.push_back(
        circuit.look_up(sign + wide[j], [](u64 v) { return u64((v & 3) != (v < 4 ? 0u : 3u)); }));
  return {low, any_of(circuit, wrong)};
}

Blocks table_entry(Circuit& circuit, const Blocks& index,
                   const std::vector<std::vector<u8>>& entries, u32 count) {
  const auto digit = [&](std::size_t level) {
    const std::size_t at = 2 * level;
    return at + 1 < index.size() ? 4 * index[at + 1] + index[at] : index[at];
  };
  const auto entry = [&](std::size_t i, u32 block) -> u64 {
    return i < entries.size() ? entries[i][block] : 0;
  };
  // level 0: of sixteen entries each the one that the low blocks say
  std::vector<Blocks> values;
  for (std::size_t first = 0; first < entries.size(); first += kMessages) {
    Blocks value;
    for (u32 b = 0; b < count; ++b)
      value.push_back(circuit.look_up(digit(0), [&](u64 v) { return entry(first + v, b); }));
    values.push_back(std::move(value));
  }
  const std::size_t levels = (index.size() + 1) / 2;
  for (std::size_t level = 1; level < levels; ++level) {
    const Sum at = digit(level);
    std::vector<Blocks> next((values.size() + kMessages - 1) / kMessages, Blocks(count, Sum(0)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Sum chosen4 =
          circuit.look_up(at, [&](u64 v) -> u64 { return v == i % kMessages ? 4 : 0; });
      const Blocks kept = keep_if(circuit, chosen4, values[i]);
      Blocks& sum = next[i / kMessages];
      for (u32 b = 0; b < count; ++b) sum[b] = (sum[b] + kept[b]).within(0, 3);
    }
    for (Blocks& sum : next)
      for (Sum& block : sum) block = circuit.look_up(block, low_block);
    values = std::move(next);
  }
  return values[0];
}

}  // namespace crenel::tfhe::radix
