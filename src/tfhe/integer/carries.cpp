#include "tfhe/integer/carries.h"

#include <algorithm>

namespace crenel::tfhe::radix {
namespace {

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

Blocks ripple(Circuit& circuit, const Blocks& columns, const Last& last, bool carry_in) {
  Blocks out;
  Sum carry(carry_in ? 1 : 0);
  for (std::size_t j = 0; j < columns.size(); ++j) {
    const Sum x = columns[j] + carry;
    const bool is_last = j + 1 == columns.size();
    out.push_back(circuit.look_up(x, is_last ? low_then(last) : low_block));
    if (!is_last) carry = circuit.look_up(x, [](u64 v) { return v >> 2; });
  }
  return out;
}

// From the carries into all columns (fast) or every other one (middle).
Blocks by_spans(Circuit& circuit, const Blocks& columns, Form form, const Last& last,
                bool carry_in) {
  const auto n = static_cast<u32>(columns.size());
  Spans spans(circuit, Blocks(columns.begin(), columns.end() - 1), carry_in);
  // Behind the widest span the last look-up can read a carry and the state of what follows it: a
  // round less, where that reaches the end.
  const u32 known = n > 1 ? spans.widest(n - 1) : 0;
  const bool reaches = form == Form::fast && known < n - 1 && n - 1 <= 2 * known;
  Blocks out;
  for (u32 j = 0; j < n; ++j) {
    const auto block = low_then(j + 1 == n ? last : Last());
    if (reaches && j > known) {
      // 4 (x mod 4), the state and the carry before it
      const Sum all =
          quadruple(circuit, columns[j]) + spans.carry(known) + (spans.state(known, j) + 1);
      out.push_back(circuit.look_up(all, [&](u64 v) { return block((v >> 2) + (v >> 1 & 1)); }));
      continue;
    }
    const bool rippled = form == Form::middle && j % 2 == 1;
    const Sum into =
        rippled ? circuit.look_up(columns[j - 1] + spans.carry(j - 1), [](u64 v) { return v >> 2; })
                : spans.carry(j);
    out.push_back(circuit.look_up(columns[j] + into, block));
  }
  return out;
}

}  // namespace

Blocks propagate(Circuit& circuit, const Blocks& columns, Form form, const Last& last,
                 bool carry_in) {
  if (form == Form::lean || columns.size() == 1) return ripple(circuit, columns, last, carry_in);
  // below the first column that can carry nothing moves
  std::size_t first = 0;
  while (!carry_in && first + 1 < columns.size() && columns[first].high <= 3) ++first;
  const auto begin = columns.begin() + static_cast<std::ptrdiff_t>(first);
  Blocks out;
  for (auto x = columns.begin(); x != begin; ++x) out.push_back(circuit.look_up(*x, low_block));
  const Blocks rest = by_spans(circuit, Blocks(begin, columns.end()), form, last, carry_in);
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
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

// What one round adds up: bins of a column, and the terms that stay.
struct Reduction {
  std::vector<std::vector<Blocks>> bins;
  std::vector<Blocks> left;
  i64 most = 0;  // of all columns afterwards
};

// No column above `target`, if that goes, with as few look-ups as that takes.
Reduction planned(const std::vector<Blocks>& terms, i64 target) {
  Reduction found{std::vector<std::vector<Blocks>>(terms.size()), terms, 0};
  i64 incoming = 0;
  for (std::size_t j = 0; j < terms.size(); ++j) {
    Blocks& left = found.left[j];
    std::stable_sort(left.begin(), left.end(),
                     [](const Sum& a, const Sum& b) { return a.high > b.high; });
    i64 high = incoming + high_of(left);
    incoming = 0;
    while (high > target) {
      Blocks bin, rest;
      i64 held = 0;
      const auto fill = [&](i64 full) {
        bin.clear(), rest.clear(), held = 0;
        for (const Sum& term : left) {
          const bool fits = held + term.high <= full;
          (fits ? bin : rest).push_back(term);
          if (fits) held += term.high;
        }
      };
      // up to 7 has both results of one rotation; up to 15 takes two
      if (high - target <= 4) fill(7);
      if (held <= 3) fill(kMessages - 1);
      if (held <= 3) break;
      found.bins[j].push_back(std::move(bin));
      high -= held - 3;
      incoming += held >> 2;
      left = std::move(rest);
    }
    found.most = std::max(found.most, high);
  }
  return found;
}

// One round towards columns of 15, which `most` exceeds. Bins of 15 become 3 here and 3 in the next
// column, so 30, 75, 180, ... are how much may be left for one, two, three rounds more: the least
// of them that goes, or what comes nearest to the largest below `most`.
std::vector<Blocks> reduced(Circuit& circuit, const std::vector<Blocks>& terms, i64 most) {
  i64 target = kMessages - 1;
  Reduction plan = planned(terms, target);
  while (plan.most > target) {
    const i64 nearer = target / 6 * (kMessages - 1);
    if (nearer >= most) break;
    target = nearer;
    plan = planned(terms, target);
  }
  std::vector<Blocks> next = std::move(plan.left);
  for (std::size_t j = 0; j < next.size(); ++j)
    for (const Blocks& bin : plan.bins[j]) compress(circuit, next, j, bin);
  return next;
}

// Columns of up to 15 so that all can be propagated, in one round: besides those that are too full,
// those that what comes out of the one below would make so.
std::vector<Blocks> settled(Circuit& circuit, const std::vector<Blocks>& terms) {
  const std::size_t n = terms.size();
  std::vector<Blocks> next(n);
  i64 incoming = 0;
  for (std::size_t j = 0; j < n; ++j) {
    const i64 high = high_of(terms[j]);
    if (high + incoming <= limit(j, n)) {
      next[j].insert(next[j].end(), terms[j].begin(), terms[j].end());
      incoming = 0;
    } else {
      compress(circuit, next, j, terms[j]);
      incoming = high >> 2;
    }
  }
  return next;
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
    if (form != Form::lean) {
      terms = most < kMessages ? settled(circuit, terms) : reduced(circuit, terms, most);
      continue;
    }
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
