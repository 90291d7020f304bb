#include "tfhe/integer/spans.h"

#include <algorithm>
#include <cassert>

namespace crenel::tfhe::radix {
namespace {

constexpr std::size_t kSpan = 4;  // states that one sum has room for

// 2^position times a state is this result of a look-up times a factor: both stay small.
constexpr i64 scale_at(std::size_t position) {
  return i64(1) << std::min<std::size_t>(position, 2);
}
constexpr i64 factor_at(std::size_t position) { return (i64(1) << position) / scale_at(position); }

// Most of |v|, as 2^k - 1, so that all weights are powers of two.
i64 magnitude(const Sum& value) {
  i64 most = 1;
  while (value.high > most || value.low < -most) most = 2 * most + 1;
  return most;
}

}  // namespace

i64 signum(i64 v) { return v > 0 ? 1 : v < 0 ? -1 : 0; }

Signed leading_sign(Circuit& circuit, std::vector<Signed> numbers) {
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
        const Signed& number = numbers[i + j];
        sum = sum + factor_at(j) * circuit.look_up_signed(number.value, [&](i64 v) {
          return scale_at(j) * number.sign(v);
        });
      }
      next.push_back({sum, signum});
    }
    numbers = std::move(next);
  }
  return numbers[0];
}

Spans::Spans(Circuit& circuit, const Blocks& columns, bool carry_in)
    : circuit_(circuit), carry_in_(carry_in), pairs_(columns.size() > 1) {
  for (const Sum& x : columns) {
    assert(x.low >= 0 && x.high <= (values_.empty() && !carry_in ? 7 : 6));
    values_.push_back(x - 3);
  }
  for (u32 j = 0; j + 1 < values_.size(); j += 2)
    pairs_ = pairs_ && !terms({column(j), column(j + 1)}).empty();
}

Spans::Part Spans::column(u32 j) const { return {values_[j], true, kFree}; }

const Spans::Part& Spans::span(u32 level, u32 index) {
  const auto [at, is_new] = spans_.try_emplace({level, index});
  if (!is_new) return at->second;
  Part part{{}, false, index % static_cast<u32>(kSpan)};
  if (level == 1 && pairs_) {
    part.value = joined({column(2 * index), column(2 * index + 1)});
  } else if (level == 1) {
    part.value = values_[index];
  } else {
    Parts below;
    for (u32 i = 0; i < kSpan; ++i) below.push_back(span(level - 1, kSpan * index + i));
    part.value = joined(below);
  }
  return at->second = std::move(part);
}

u32 Spans::widest(u32 j) const {
  u32 level = 1;
  while (size_of(level + 1) <= j) ++level;
  return size_of(level);
}

Spans::Parts Spans::parts(u32 from, u32 to) {
  Parts found;
  u32 level = 1;
  while (size_of(level + 1) <= to - from) ++level;
  for (; level > 0; --level)
    for (; from + size_of(level) <= to; from += size_of(level)) {
      assert(from % size_of(level) == 0);
      found.push_back(span(level, from / size_of(level)));
    }
  if (from < to) found.push_back(column(from));
  return found;
}

u32 Spans::round_of(const Sum& value) const {
  u32 round = 0;
  for (const auto& [node, factor] : value.terms)
    round = std::max(round, circuit_.nodes()[node].round);
  return round;
}

// States are looked up with the weights that
// they have in the next wider span, whose sums share them, unless that makes too much noise.
std::vector<Spans::Term> Spans::terms(const Parts& parts) const {
  std::vector<Term> terms;
  i64 below = 0;
  for (const Part& part : parts) {
    const i64 weight = below + 1, own = std::min<i64>(weight, 4);
    below += weight * (part.is_column ? magnitude(part.value) : 1);
    i64 scale = part.position == kFree ? own : scale_at(part.position);
    if (part.is_column || weight % scale != 0) scale = 1;
    terms.push_back({weight / scale, scale});
  }
  if (below >= kMessages) return {};
  Sum columns;  // neighbours may read the same nodes
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].is_column) columns = columns + terms[i].factor * parts[i].value;
  for (;;) {
    double norm2 = columns.norm2();
    Term* loudest = nullptr;  // of those that another look-up makes quieter
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].is_column) continue;
      const auto factor = static_cast<double>(terms[i].factor);
      norm2 += factor * factor;
      if (factor > 2 && (loudest == nullptr || terms[i].factor > loudest->factor))
        loudest = &terms[i];
    }
    if (norm2 <= circuit_.max_norm2()) return terms;
    if (loudest == nullptr) return {};
    const i64 weight = loudest->factor * loudest->scale;
    loudest->scale = std::min<i64>(weight, 4);
    loudest->factor = weight / loudest->scale;
  }
}

Sum Spans::joined(const Parts& parts) {
  const auto found = terms(parts);
  assert(!found.empty());
  Sum sum;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& [factor, scale] = found[i];
    const Sum value = parts[i].is_column
                          ? parts[i].value
                          : circuit_.look_up_signed(parts[i].value, [scale = scale](i64 v) {
                              return scale * signum(v);
                            });
    sum = sum + factor * value;
  }
  return sum;
}

Spans::Parts Spans::fitted(Parts parts) {
  if (!terms(parts).empty()) return parts;
  u32 last = 0;
  for (const Part& part : parts) last = std::max(last, ready(part));
  for (const bool hurried : {true, false}) {
    for (std::size_t count = 1; count < parts.size(); ++count) {
      const auto first = parts.end() - static_cast<std::ptrdiff_t>(count);
      if (count == 1 && !first->is_column) continue;  // is one state already
      Parts rest(parts.begin(), first);
      rest.push_back({});  // as a state
      if (terms(rest).empty()) continue;
      Parts top(first, parts.end());
      u32 round = 0;
      for (const Part& part : top) round = std::max(round, ready(part));
      if (hurried && round + 1 > last) continue;
      top = count == 1 ? top : fitted(std::move(top));
      rest.back().value = count == 1 ? top[0].value : joined(top);
      return rest;
    }
  }
  assert(false);  // four states always fit
  return parts;
}

Sum Spans::state(u32 from, u32 to) {
  const Parts found = parts(from, to);
  const Sum value = found.size() == 1 ? found[0].value : joined(fitted(found));
  return circuit_.look_up_signed(value, signum);
}

Sum Spans::carry(u32 j, i64 one) {
  if (j == 0) return Sum(carry_in_ ? one : 0);
  const Parts found = parts(0, j);
  const Sum value = found.size() == 1 ? found[0].value : joined(fitted(found));
  return circuit_.look_up_signed(value,
                                 [&](i64 v) { return v > 0 || (v == 0 && carry_in_) ? one : 0; });
}

}  // namespace crenel::tfhe::radix
