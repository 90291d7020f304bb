#include "tfhe/integer/operations.h"

#include <algorithm>

#include "tfhe/integer/carries.h"

namespace crenel::tfhe::radix {
namespace {

bool is_known(const Blocks& blocks) {
  return std::all_of(blocks.begin(), blocks.end(), [](const Sum& x) { return x.is_constant(); });
}

// a_j + (3 - b_j): columns of a + not b, in [0, 6]; above 3 where a_j > b_j, 3 where equal.
Sum difference_column(const Sum& a, const Sum& b) { return a - b + 3; }

// May a pair of blocks be compared at once?
bool takes_pairs(const Circuit& circuit) {
  constexpr double kPairNorm2 = 16 + 16 + 1 + 1;
  return circuit.max_norm2() >= kPairNorm2;
}

// factor * bit where its sums with all of `others` are quiet enough for a look-up, as they are
// where none reads a node of the bit; else by a look-up of the bit.
Sum scaled(Circuit& circuit, i64 factor, const Sum& bit, const Blocks& others) {
  Sum product = factor * bit;
  const bool quiet = std::all_of(others.begin(), others.end(), [&](const Sum& other) {
    return (other + product).norm2() <= circuit.max_norm2();
  });
  if (quiet) return product;
  return circuit.look_up(bit, [=](u64 v) { return static_cast<u64>(factor) * v; });
}

// Differences of pairs of blocks, or of blocks, least significant first.
Blocks differences(const Circuit& circuit, const Blocks& a, const Blocks& b) {
  const u32 step = takes_pairs(circuit) ? 2 : 1;
  Blocks out;
  for (u32 j = 0; j < count_of(a); j += step) {
    const Sum low = a[j] - b[j];
    if (step == 1 || j + 1 == count_of(a)) {
      out.push_back(low);
      continue;
    }
    const Sum high = a[j + 1] - b[j + 1], pair = 4 * high + low;
    if (pair.norm2() <= circuit.max_norm2())
      out.push_back(pair);
    else  // a is not b, or the like: the same nodes twice
      out.push_back(low), out.push_back(high);
  }
  return out;
}

Sum equal_blocks(Circuit& circuit, const Blocks& a, const Blocks& b, bool negate, u64 one) {
  constexpr std::size_t kSigns = 3;  // s_0 + 2 s_1 + 4 s_2 is 0 where all are
  const Blocks parts = differences(circuit, a, b);
  const bool pairs = takes_pairs(circuit);
  Blocks differ;
  for (std::size_t i = 0; i < parts.size(); i += pairs ? kSigns : 1) {
    Sum sum = parts[i];
    if (pairs) {
      sum = Sum(0);
      for (std::size_t j = i; j < std::min(i + kSigns, parts.size()); ++j) {
        const i64 scale = i64(1) << (j - i);
        sum = sum + circuit.look_up_signed(parts[j], [=](i64 v) { return scale * signum(v); });
      }
      if (parts.size() <= kSigns)  // the last look-up
        return circuit.look_up_signed(
            sum, [=](i64 v) { return (v != 0) == negate ? static_cast<i64>(one) : 0; });
    }
    differ.push_back(circuit.look_up_signed(sum, [](i64 v) { return i64(v != 0); }));
  }
  return negate ? any_of(circuit, differ, one) : none_of(circuit, differ, one);
}

// a ^ 2 - (b ^ 2) + 3 for the top blocks of signed integers.
u64 signed_difference(u64 v) { return ((v >> 2) ^ 2) + 3 - ((v & 3) ^ 2); }

// 1 where a > b, or a >= b with `or_equal`: the carry out of a + not b + or_equal, block by block.
Sum greater_by_ripple(Circuit& circuit, const Blocks& a, const Blocks& b, bool or_equal,
                      bool is_signed, u64 one) {
  Sum carry(or_equal ? 1 : 0);
  for (u32 j = 0; j < count_of(a); ++j) {
    const bool last = j + 1 == count_of(a);
    const Sum column = is_signed && last ? circuit.look_up(4 * a[j] + b[j], signed_difference)
                                         : difference_column(a[j], b[j]);
    carry = circuit.look_up(column + carry, [&](u64 v) { return v < 4 ? 0 : last ? one : 1; });
  }
  return carry;
}

// The same by signs. The top blocks of signed integers compare with their sign bits flipped, both
// in one message.
Sum greater_blocks(Circuit& circuit, const Blocks& a, const Blocks& b, bool or_equal,
                   bool is_signed, Form form, u64 one) {
  if (form == Form::lean && !takes_pairs(circuit))
    return greater_by_ripple(circuit, a, b, or_equal, is_signed, one);
  Blocks low_a = a, low_b = b;
  if (is_signed) low_a.pop_back(), low_b.pop_back();
  std::vector<Signed> numbers;
  for (const Sum& part : differences(circuit, low_a, low_b)) numbers.push_back({part, signum});
  if (is_signed)
    numbers.push_back({4 * a.back() + b.back(), [](i64 v) {
                         return signum(static_cast<i64>(signed_difference(u64(v))) - 3);
                       }});
  const Signed leading = leading_sign(circuit, std::move(numbers));
  return circuit.look_up_signed(leading.value, [&](i64 v) -> i64 {
    const i64 sign = leading.sign(v);
    return sign > 0 || (sign == 0 && or_equal) ? static_cast<i64>(one) : 0;
  });
}

// Digits of a known factor in {-1, 0, 1, 2} modulo 4^n, least significant first.
std::vector<i64> signed_digits(const Blocks& factor) {
  std::vector<i64> digits;
  i64 carry = 0;
  for (const Sum& block : factor) {
    const i64 digit = block.constant + carry;
    carry = digit >= 3 ? 1 : 0;
    digits.push_back(digit - (carry ? 4 : 0));
  }
  return digits;
}

// Column sums of known integers, of any sign, as blocks modulo 4^n.
Blocks carried(const std::vector<i64>& columns) {
  Blocks blocks;
  i64 carry = 0;
  for (const i64 column : columns) {
    const i64 total = column + carry;
    carry = total >> 2;  // rounds down: what is left is in 0..3
    blocks.push_back(Sum(total & 3));
  }
  return blocks;
}

Blocks multiply_known(Circuit& circuit, const Blocks& a, const Blocks& factor, Form form) {
  const u32 n = count_of(a);
  std::vector<Blocks> terms(n);
  const std::vector<i64> digits = signed_digits(factor);
  std::vector<i64> correction(n, 0);
  for (u32 j = 0; j < n; ++j) {
    if (digits[j] == 0) continue;
    for (u32 i = 0; i + j < n; ++i) {
      // -a = (3 - a) - 3
      terms[i + j].push_back(digits[j] > 0 ? digits[j] * a[i] : 3 - a[i]);
      if (digits[j] < 0) correction[i + j] -= 3;
    }
  }
  const Blocks constants = carried(correction);
  for (u32 j = 0; j < n; ++j)
    if (constants[j].constant != 0) terms[j].push_back(constants[j]);
  return add_columns(circuit, std::move(terms), form);
}

}  // namespace

Blocks constant_blocks(const WideValue& value, u32 bits) {
  Blocks blocks;
  for (u32 j = 0; j < bits; j += 2) blocks.push_back(Sum(static_cast<i64>(value.block(j / 2))));
  return blocks;
}

Blocks add(Circuit& circuit, const Blocks& a, const Blocks& b, Form form) {
  Blocks columns;
  for (u32 j = 0; j < count_of(a); ++j) columns.push_back(a[j] + b[j]);
  return propagate(circuit, columns, form);
}

Blocks subtract(Circuit& circuit, const Blocks& a, const Blocks& b, Form form, const Last& last) {
  Blocks columns;
  for (u32 j = 0; j < count_of(a); ++j) columns.push_back(difference_column(a[j], b[j]));
  return propagate(circuit, columns, form, last, true);
}

namespace {

// a + steps + carry_in where the bit is set, else a.
Blocks stepped_where(Circuit& circuit, const Sum& bit, const Blocks& a, const Blocks& steps,
                     bool carry_in) {
  constexpr i64 kSet = 5;  // above a step and its carry
  const u32 n = count_of(a);
  Blocks columns;
  for (u32 j = 0; j + 1 < n; ++j) columns.push_back(a[j] + steps[j]);
  Spans spans(circuit, columns, carry_in);
  Blocks carried;
  for (u32 j = 0; j < n; ++j) carried.push_back(steps[j] + spans.carry(j));
  const Sum set = scaled(circuit, kSet, bit, carried);
  Blocks out;
  for (u32 j = 0; j < n; ++j) {
    const Sum step =
        circuit.look_up(carried[j] + set, [](u64 v) { return v >= kSet ? (v - kSet) & 3 : 0; });
    out.push_back(circuit.look_up(a[j] + step, [](u64 v) { return v & 3; }));
  }
  return out;
}

}  // namespace

Blocks add_where(Circuit& circuit, const Sum& bit, const Blocks& a, const Blocks& b, Form form) {
  if (form == Form::fast) return stepped_where(circuit, bit, a, b, false);
  return add(circuit, a, choose(circuit, bit, b, Blocks(b.size(), Sum(0))), form);
}

Blocks subtract_where(Circuit& circuit, const Sum& bit, const Blocks& a, const Blocks& b,
                      Form form) {
  if (form == Form::fast) return stepped_where(circuit, bit, a, bit_not(b), true);
  return subtract(circuit, a, choose(circuit, bit, b, Blocks(b.size(), Sum(0))), form);
}

std::vector<Blocks> product_columns(Circuit& circuit, const Blocks& a, const Blocks& b) {
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
  return terms;
}

Blocks multiply(Circuit& circuit, const Blocks& a, const Blocks& b, Form form) {
  if (is_known(b)) return multiply_known(circuit, a, b, form);
  if (is_known(a)) return multiply_known(circuit, b, a, form);
  return add_columns(circuit, product_columns(circuit, a, b), form);
}

Sum compare(Circuit& circuit, Comparison comparison, const Blocks& a, const Blocks& b,
            bool is_signed, Form form, u64 one) {
  switch (comparison) {
    case Comparison::equal:
      return equal_blocks(circuit, a, b, false, one);
    case Comparison::not_equal:
      return equal_blocks(circuit, a, b, true, one);
    case Comparison::less:
      return greater_blocks(circuit, b, a, false, is_signed, form, one);
    case Comparison::less_equal:
      return greater_blocks(circuit, b, a, true, is_signed, form, one);
    case Comparison::greater:
      return greater_blocks(circuit, a, b, false, is_signed, form, one);
    case Comparison::greater_equal:
      break;
  }
  return greater_blocks(circuit, a, b, true, is_signed, form, one);
}

Blocks select(Circuit& circuit, const Sum& condition, const Blocks& a, const Blocks& b) {
  Blocks out;
  for (u32 j = 0; j < count_of(a); ++j) {
    const bool known_a = a[j].is_constant();
    if (known_a || b[j].is_constant()) {
      const Sum& other = known_a ? b[j] : a[j];
      const u64 known = static_cast<u64>((known_a ? a : b)[j].constant);
      const auto chosen = [=](u64 v, u64 x) { return (v >= kCondition) == known_a ? known : x; };
      if (other.is_constant()) {
        const u64 x = static_cast<u64>(other.constant);
        out.push_back(circuit.look_up(condition, [=](u64 v) { return chosen(v, x); }));
      } else {
        out.push_back(circuit.look_up(other + condition, [=](u64 v) { return chosen(v, v & 3); }));
      }
      continue;
    }
    // 3 + (condition ? a - b : 0), then b again; the second look-up removes b's noise
    const Sum step = circuit.look_up(difference_column(a[j], b[j]) + condition,
                                     [](u64 v) { return v >= kCondition ? v - kCondition : 3; });
    out.push_back(circuit.look_up((step + b[j] - 3).within(0, 3), [](u64 v) { return v; }));
  }
  return out;
}

Blocks choose(Circuit& circuit, const Sum& bit, const Blocks& a, const Blocks& b) {
  if (!is_known(a) && !is_known(b)) {
    Blocks read;
    for (u32 j = 0; j < count_of(a); ++j) read.push_back(a[j] - b[j]);
    return select(circuit, scaled(circuit, kCondition, bit, read), a, b);
  }
  const bool known_a = is_known(a);
  Blocks out;
  for (u32 j = 0; j < count_of(a); ++j) {
    const u64 known = static_cast<u64>((known_a ? a : b)[j].constant);
    out.push_back(circuit.look_up(4 * bit + (known_a ? b : a)[j],
                                  [=](u64 v) { return (v >= 4) == known_a ? known : v & 3; }));
  }
  return out;
}

Blocks exchange(Circuit& circuit, const Blocks& a, const Blocks& b, bool is_signed, Form form) {
  const Sum less = compare(circuit, Comparison::less, a, b, is_signed, form, kCondition);
  Blocks smaller, larger;
  for (u32 j = 0; j < count_of(a); ++j) {
    // a - b where a is smaller, else 0: added to b, taken off a
    const Sum step = circuit.look_up(difference_column(a[j], b[j]) + less,
                                     [](u64 v) { return v >= kCondition ? v - kCondition : 3; });
    const auto looked_up = [&](const Sum& x) {
      return circuit.look_up(x.within(0, 3), [](u64 v) { return v; });
    };
    smaller.push_back(looked_up(step + b[j] - 3));
    larger.push_back(looked_up(a[j] - step + 3));
  }
  smaller.insert(smaller.end(), larger.begin(), larger.end());
  return smaller;
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
