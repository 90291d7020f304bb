// Carries in the middle form. Three neighbouring stages with states v in {0, 1, 2} and an incoming
// carry c act like binary digits: a carry leaves stage j exactly when c + v_0 + 2 v_1 + ... + 2^j
// v_j >= 2^(j+1). With three stages that sum is at most 15, one message. Look-ups give states
// already multiplied by their power of two, so every sum has factors 1.
#include "tfhe/integer/carries.h"

#include <algorithm>
#include <cassert>

namespace crenel::tfhe::radix {
namespace {

constexpr u32 kGroup = 3;

/// A column with an incoming carry: it hands on 2 (a carry whatever comes in), 1 (what comes in) or
/// 0.
struct Stage {
  Sum value;
  std::function<u64(u64)> state;  ///< value -> 0, 1, 2
};

u64 low_block(u64 v) { return v & 3; }

std::function<u64(u64)> at_least(u64 bound, u64 one = 1) {
  return [=](u64 v) { return v >= bound ? one : 0; };
}

// v >= carrying: 2, one less: 1
std::function<u64(u64)> state_from(u64 carrying) {
  return [=](u64 v) -> u64 { return v >= carrying ? 2 : v + 1 == carrying ? 1 : 0; };
}

Sum scaled_state(Circuit& circuit, const Stage& stage, u32 shift) {
  return circuit.look_up(stage.value, [&](u64 v) { return stage.state(v) << shift; });
}

// States of all stages, the i-th times 2^(i mod 3).
Blocks scaled_states(Circuit& circuit, const std::vector<Stage>& stages) {
  Blocks states;
  for (u32 i = 0; i < stages.size(); ++i)
    states.push_back(scaled_state(circuit, stages[i], i % kGroup));
  return states;
}

Blocks carries_into_groups(Circuit& circuit, const Sum& carry, const Blocks& states);

// Carries into the stages 0..t behind which `states` (t of them, scaled) stand; the first is
// `carry`.
Blocks carries(Circuit& circuit, const Sum& carry, const Blocks& states) {
  const Blocks groups = carries_into_groups(circuit, carry, states);
  Blocks into;
  for (u32 i = 0; i <= states.size(); ++i) {
    Sum sum = groups[i / kGroup];
    for (u32 j = i - i % kGroup; j < i; ++j) sum = sum + states[j];
    into.push_back(i % kGroup == 0 ? sum : circuit.look_up(sum, at_least(u64(1) << (i % kGroup))));
  }
  return into;
}

// Carries into the groups of three that the stages 0..t form. The first group that leaves a carry
// knows its own carry already; the others are stages of the same problem, three times smaller.
Blocks carries_into_groups(Circuit& circuit, const Sum& carry, const Blocks& states) {
  const auto groups = static_cast<u32>(states.size() / kGroup + 1);
  if (groups == 1) return {carry};
  std::vector<Stage> totals;
  for (u32 g = 0; g + 1 < groups; ++g) {
    Sum total;
    for (u32 j = 0; j < kGroup; ++j) total = total + states[g * kGroup + j];
    totals.push_back({total, state_from(1u << kGroup)});
  }
  const Sum first = circuit.look_up(carry + totals[0].value, at_least(1u << kGroup));
  totals.erase(totals.begin());
  Blocks into = carries(circuit, first, scaled_states(circuit, totals));
  into.insert(into.begin(), carry);
  return into;
}

// 4 (x mod 4), without a look-up where it is 4 x.
Sum quadruple(Circuit& circuit, const Sum& x) {
  if (x.low >= 0 && x.high <= 3 && x.is_node()) return 4 * x;
  return circuit.look_up(x, [](u64 v) { return 4 * (v & 3); });
}

// Low block of v, then `last` of it.
std::function<u64(u64)> low_then(const Last& last) {
  if (!last) return low_block;
  return [last](u64 v) { return last(v & 3); };
}

Blocks ripple(Circuit& circuit, const Blocks& columns, const Last& last) {
  Blocks out;
  Sum carry;
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const Sum x = columns[j] + carry;
    const bool is_last = j + 1 == columns.size();
    out.push_back(circuit.look_up(x, is_last ? low_then(last) : low_block));
    if (!is_last) carry = circuit.look_up(x, [](u64 v) { return v >> 2; });
  }
  return out;
}

// Appends the blocks of columns[1..] to `out`, which holds that of columns[0].
void propagate_from(Circuit& circuit, const Blocks& columns, const Last& last, Blocks& out) {
  const auto n = static_cast<u32>(columns.size());
  if (n == 1) return;
  const Sum carry = circuit.look_up(columns[0], at_least(4));
  std::vector<Stage> stages;  // columns 1..n-2; the last one's carry is dropped
  for (u32 j = 1; j + 1 < n; ++j) {
    assert(columns[j].high <= 6);
    stages.push_back({columns[j], state_from(4)});
  }
  const Blocks states = scaled_states(circuit, stages);
  const Blocks groups = carries_into_groups(circuit, carry, states);
  for (u32 i = 0; i + 1 < n; ++i) {
    const Sum& x = columns[i + 1];
    const Sum& into = groups[i / kGroup];
    const auto block = low_then(i + 2 == n ? last : Last());
    if (i % kGroup == 0) {
      out.push_back(circuit.look_up(x + into, block));
    } else if (i % kGroup == 1) {
      // the carry is never made: 4 (x mod 4) and the sum that decides it fit one message
      const Sum both = quadruple(circuit, x) + into + states[i - 1];
      out.push_back(circuit.look_up(both, [&](u64 v) { return block((v >> 2) + (v >> 1 & 1)); }));
    } else {
      const Sum c = circuit.look_up(into + states[i - 2] + states[i - 1], at_least(4));
      out.push_back(circuit.look_up(x + c, block));
    }
  }
}

// Carries in the fast form. A column's state is +1 where it carries, -1 where it does not, whatever
// comes in, and 0 where it hands on what comes in; a known carry is +1 or -1. Of neighbours the
// sign of s_0 + 2 s_1 + 4 s_2 + 8 s_3 is the state of all: the top one that is not 0 decides. So
// spans grow fourfold a round, and so do the carries that are known. Factors 8, 4, 2 and 1, the
// last one twice (a carry c in {0, 1} is the sign 2 c - 1), are 88 squared; where that is too much,
// a state is looked up a second time as 4 s, and factors are 2, 1, 2 and 2.
class Spans {
 public:
  /// Of the columns but the last.
  Spans(Circuit& circuit, const Blocks& columns)
      : circuit_(circuit), wide_(circuit.max_norm2() >= kWideNorm2) {
    known_.push_back(circuit.look_up(columns[0], at_least(4)));
    for (u32 j = 0; j + 1 < columns.size(); ++j) {
      assert(columns[j].high <= (j == 0 ? 7 : 6));  // nothing comes into the first
      arguments_.push_back({columns[j], [](i64 v) { return v > 3 ? 1 : v == 3 ? 0 : -1; }});
    }
    while (known() + span_ < count()) widen();
  }

  /// Carries out of columns 0..known() - 1; those behind, up to span() more, are the states' words.
  u32 known() const { return static_cast<u32>(known_.size()); }
  u32 span() const { return span_; }
  const Sum& carry(u32 j) const { return known_[j]; }
  /// -1, 0 or 1 times `scale` of the columns j - span() + 1 to j.
  Sum state(u32 j, i64 scale = 1) {
    const Signed& s = arguments_[j];
    return circuit_.look_up_signed(s.value, [&](i64 v) { return scale * s.sign(v); });
  }

 private:
  static constexpr double kWideNorm2 = 64 + 16 + 4 + 4;
  u32 count() const { return static_cast<u32>(arguments_.size()); }

  // 2^shift times the state.
  Sum weighted(u32 j, u32 shift) {
    return shift < 2 || wide_ ? (i64(1) << shift) * state(j)
                              : (i64(1) << (shift - 2)) * state(j, 4);
  }

  void widen() {
    std::vector<Signed> next = arguments_;
    Blocks known = known_;
    for (u32 i = this->known(); i < count(); ++i) {
      std::vector<u32> parts;  // the top one first; a carry that is known ends them
      for (u32 j = i;; j -= span_) {
        parts.push_back(j);
        if (j < this->known() || parts.size() == 4 || j < span_) break;
      }
      const bool decided = parts.back() < this->known();
      Sum sum;
      for (u32 t = 0; t < parts.size(); ++t) {
        const bool carry = decided && t + 1 == parts.size();
        sum = sum + (carry ? 2 * known_[parts[t]] - 1
                           : weighted(parts[t], static_cast<u32>(parts.size()) - 1 - t));
      }
      if (decided)
        known.push_back(circuit_.look_up_signed(sum, [](i64 v) { return i64(v > 0); }));
      else
        next[i] = {sum, signum};
    }
    arguments_ = std::move(next);
    known_ = std::move(known);
    span_ *= 4;
  }

  Circuit& circuit_;
  bool wide_;
  std::vector<Signed> arguments_;
  Blocks known_;
  u32 span_ = 1;
};

// As propagate_from.
void propagate_spans(Circuit& circuit, const Blocks& columns, const Last& last, Blocks& out) {
  const auto n = static_cast<u32>(columns.size());
  if (n == 1) return;
  Spans spans(circuit, columns);
  for (u32 i = 1; i < n; ++i) {
    const u32 j = i - 1;
    const auto block = low_then(i + 1 == n ? last : Last());
    if (j < spans.known()) {
      out.push_back(circuit.look_up(columns[i] + spans.carry(j), block));
      continue;
    }
    // the carry is never made: 4 (x mod 4), the state and the carry before it fit one message
    const Sum both =
        quadruple(circuit, columns[i]) + spans.carry(j - spans.span()) + (spans.state(j) + 1);
    out.push_back(circuit.look_up(both, [&](u64 v) { return block((v >> 2) + (v >> 1 & 1)); }));
  }
}

}  // namespace

Blocks propagate(Circuit& circuit, const Blocks& columns, Form form, const Last& last) {
  if (form == Form::lean) return ripple(circuit, columns, last);
  // below the first column that can carry nothing moves
  std::size_t first = 0;
  while (first + 1 < columns.size() && columns[first].high <= 3) ++first;
  Blocks out;
  for (std::size_t j = 0; j <= first; ++j) {
    const bool is_last = j + 1 == columns.size();
    out.push_back(circuit.look_up(columns[j], is_last ? low_then(last) : low_block));
  }
  const Blocks rest(columns.begin() + static_cast<std::ptrdiff_t>(first), columns.end());
  (form == Form::fast ? propagate_spans : propagate_from)(circuit, rest, last, out);
  return out;
}

i64 signum(i64 v) { return v > 0 ? 1 : v < 0 ? -1 : 0; }

Signed leading_sign(Circuit& circuit, std::vector<Signed> numbers) {
  constexpr std::size_t kSpan = 4;
  while (numbers.size() > 1) {
    std::vector<Signed> next;
    for (std::size_t i = 0; i < numbers.size(); i += kSpan) {
      const std::size_t count = std::min(kSpan, numbers.size() - i);
      if (count == 1) {
        next.push_back(numbers[i]);
        continue;
      }
      Sum sum;
      for (std::size_t j = 0; j < count; ++j) {
        // 2^j times the sign, as a result and a factor that both are small
        const i64 factor = j == 3 ? 2 : 1, scale = (i64(1) << j) / factor;
        const Signed& number = numbers[i + j];
        sum = sum + factor * circuit.look_up_signed(number.value,
                                                    [&](i64 v) { return scale * number.sign(v); });
      }
      next.push_back({sum, signum});
    }
    numbers = std::move(next);
  }
  return numbers[0];
}

namespace {

i64 high_of(const Blocks& column) {
  i64 high = 0;
  for (const Sum& term : column) high += term.high;
  return high;
}

Sum total_of(const Blocks& column) {
  Sum total;
  for (const Sum& term : column) total = total + term;
  return total;
}

// What a propagation takes: 6, in the last column 14.
i64 limit(std::size_t column, std::size_t count) { return column + 1 == count ? 14 : 6; }

// Replaces terms by their sum modulo 4, and its quotient in the next column.
void compress(Circuit& circuit, std::vector<Blocks>& next, std::size_t column, const Blocks& bin) {
  const Sum total = total_of(bin);
  next[column].push_back(circuit.look_up(total, low_block));
  if (column + 1 < next.size())
    next[column + 1].push_back(circuit.look_up(total, [](u64 v) { return v >> 2; }));
}

// Fills bins up to 15, largest terms first. A bin that is not full stays as it is unless `all`.
void compress_column(Circuit& circuit, std::vector<Blocks>& next, std::size_t column, Blocks terms,
                     bool all) {
  std::stable_sort(terms.begin(), terms.end(),
                   [](const Sum& a, const Sum& b) { return a.high > b.high; });
  while (!terms.empty()) {
    Blocks bin, rest;
    i64 high = 0;
    for (const Sum& term : terms) {
      const bool fits = high + term.high < kMessages;
      (fits ? bin : rest).push_back(term);
      if (fits) high += term.high;
    }
    // more than one term, or one that is too large for a block
    const bool worth = bin.size() > 1 || bin[0].high > 3;
    if (worth && (all || !rest.empty())) {
      compress(circuit, next, column, bin);
    } else {
      for (const Sum& term : bin) next[column].push_back(term);
    }
    terms = std::move(rest);
  }
}

}  // namespace

Blocks add_columns(Circuit& circuit, std::vector<Blocks> terms, Form form) {
  const std::size_t n = terms.size();
  for (;;) {
    i64 most = 0;
    bool done = true;
    for (std::size_t j = 0; j < n; ++j) {
      most = std::max(most, high_of(terms[j]));
      done = done && high_of(terms[j]) <= limit(j, n);
    }
    if (done) break;
    std::vector<Blocks> next(n);
    for (std::size_t j = 0; j < n; ++j) {
      if (high_of(terms[j]) <= limit(j, n))
        next[j].insert(next[j].end(), terms[j].begin(), terms[j].end());
      else
        compress_column(circuit, next, j, terms[j], most < kMessages);
    }
    terms = std::move(next);
  }
  Blocks columns;
  for (const Blocks& column : terms) columns.push_back(total_of(column));
  return propagate(circuit, columns, form);
}

Blocks prefix_or(Circuit& circuit, const Blocks& flags) {
  constexpr std::size_t kFlags = 7;
  const auto any = [](u64 v) { return u64(v != 0); };
  Blocks out, totals, sums;
  for (std::size_t i = 0; i < flags.size(); ++i) {
    sums.push_back(i % kFlags == 0 ? flags[i] : sums.back() + flags[i]);
    if (i % kFlags == kFlags - 1) totals.push_back(circuit.look_up(sums.back(), any));
  }
  const Blocks before = totals.empty() ? Blocks() : prefix_or(circuit, totals);
  for (std::size_t i = 0; i < flags.size(); ++i)
    out.push_back(circuit.look_up(i < kFlags ? sums[i] : sums[i] + before[i / kFlags - 1], any));
  return out;
}

namespace {

// Not 0 where any flag is set: 15 of them fit a message.
Sum gathered(Circuit& circuit, Blocks flags) {
  while (flags.size() >= kMessages) {
    Blocks fewer;
    for (std::size_t i = 0; i < flags.size(); i += kMessages - 1) {
      Sum sum;
      for (std::size_t j = i; j < std::min<std::size_t>(i + kMessages - 1, flags.size()); ++j)
        sum = sum + flags[j];
      fewer.push_back(circuit.look_up(sum, [](u64 v) { return u64(v != 0); }));
    }
    flags = std::move(fewer);
  }
  Sum sum;
  for (const Sum& flag : flags) sum = sum + flag;
  return sum;
}

}  // namespace

Sum any_of(Circuit& circuit, const Blocks& flags, u64 one) {
  return circuit.look_up(gathered(circuit, flags), [=](u64 v) { return v != 0 ? one : 0; });
}

Sum none_of(Circuit& circuit, const Blocks& flags, u64 one) {
  return circuit.look_up(gathered(circuit, flags), [=](u64 v) { return v == 0 ? one : 0; });
}

}  // namespace crenel::tfhe::radix
