#include "tfhe/integer/circuit.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <limits>
#include <string>

#include "crenel/core/error.h"

namespace crenel::tfhe::radix {

namespace {

u64 mixed(u64 hash, u64 value) { return (hash ^ value) * 0x100000001b3u; }  // FNV-1a, by words

std::string range(i64 low, i64 high) { return cat(low, "..", high); }
/// ParameterError for [low, high], of `what`, that is empty or leaves [least, most].
void expect_within(const char* what, i64 low, i64 high, i64 least, i64 most) {
  if (least <= low && low <= high && high <= most) return;
  const std::string found = range(low, high), expected = range(least, most);
  throw ParameterError(cat(what, " in ", found, ", expected ", expected),
                       {{"found", found}, {"expected", expected}});
}

}  // namespace

u64 Sum::hash() const {
  u64 hash = mixed(0xcbf29ce484222325u, static_cast<u64>(constant));
  for (const auto& [node, factor] : terms)
    hash = mixed(mixed(hash, node), static_cast<u64>(factor));
  return hash;
}

double Sum::norm2() const {
  double sum = 0;
  for (const auto& [node, factor] : terms)
    sum += static_cast<double>(factor) * static_cast<double>(factor);
  return sum;
}

Sum Sum::within(i64 l, i64 h) const {
  Sum bounded = *this;
  bounded.low = std::max(low, l);
  bounded.high = std::min(high, h);
  return bounded;
}

Sum operator+(const Sum& a, const Sum& b) {
  Sum sum;
  sum.terms.reserve(a.terms.size() + b.terms.size());
  auto x = a.terms.begin(), y = b.terms.begin();
  while (x != a.terms.end() || y != b.terms.end()) {
    if (y == b.terms.end() || (x != a.terms.end() && x->first < y->first)) {
      sum.terms.push_back(*x++);
    } else if (x == a.terms.end() || y->first < x->first) {
      sum.terms.push_back(*y++);
    } else {
      if (x->second + y->second != 0) sum.terms.emplace_back(x->first, x->second + y->second);
      ++x, ++y;
    }
  }
  sum.constant = a.constant + b.constant;
  sum.low = a.low + b.low;
  sum.high = a.high + b.high;
  if (sum.terms.empty()) sum.low = sum.high = sum.constant;
  return sum;
}

Sum operator*(i64 factor, const Sum& a) {
  if (factor == 0) return Sum(0);
  Sum product = a;
  for (auto& term : product.terms) term.second *= factor;
  product.constant *= factor;
  product.low = factor * (factor > 0 ? a.low : a.high);
  product.high = factor * (factor > 0 ? a.high : a.low);
  return product;
}

Sum Circuit::input(i64 high) {
  Node node;
  node.input = inputs_++;
  node.high = static_cast<u32>(high);
  nodes_.push_back(node);
  Sum sum;
  sum.terms = {{static_cast<u32>(nodes_.size() - 1), 1}};
  sum.high = high;
  return sum;
}

Blocks Circuit::inputs(u32 count) {
  Blocks blocks;
  for (u32 j = 0; j < count; ++j) blocks.push_back(input(3));
  return blocks;
}

void Circuit::finish() {
  known_ = {};
  nodes_.shrink_to_fit();
}

u64 Circuit::bytes() const {
  u64 sum = nodes_.capacity() * sizeof(Node);
  for (const Node& node : nodes_) sum += node.argument.heap_bytes();
  return sum;
}

// The loudest node times its factor as the sum of few look-ups that multiply it, each with an error
// of its own.
Sum Circuit::quieter(const Sum& x) {
  Sum sum = x;
  while (sum.norm2() > max_norm2_) {
    const auto loudest = std::max_element(
        sum.terms.begin(), sum.terms.end(),
        [](const auto& a, const auto& b) { return std::abs(a.second) < std::abs(b.second); });
    Sum node;
    node.terms = {{loudest->first, 1}};
    node.high = nodes_[loudest->first].high;
    const i64 most = (kMessages - 1) / std::max<i64>(node.high, 1);  // that a look-up multiplies by
    const i64 factor = loudest->second, sign = factor < 0 ? -1 : 1;
    assert(most > 1 && factor * sign > 1);
    if (most == 1 || factor * sign == 1) break;
    sum.terms.erase(loudest);
    i64 left = factor * sign;
    while (left > 0) {
      const i64 times = std::min(left, most);
      sum = sum + sign * look_up(node, [=](u64 v) { return static_cast<u64>(times) * v; });
      left -= times;
    }
  }
  sum.low = x.low, sum.high = x.high;
  return sum;
}

Sum Circuit::add_node(const Sum& x, Node node, i64 least, i64 most) {
  if (x.norm2() > max_norm2_) {
    const Sum quiet = quieter(x);
    if (!quiet.same_value(x)) return add_node(quiet, std::move(node), least, most);
  }
  u64 hash = x.hash();
  for (const u8 entry : node.table) hash = mixed(hash, entry);
  u32 at = static_cast<u32>(nodes_.size());
  const auto [first, last] = known_.equal_range(hash);
  const auto equal = std::find_if(first, last, [&](const auto& known) {
    const Node& other = nodes_[known.second];
    return other.table == node.table && other.argument.same_value(x);
  });
  if (equal != last) {
    at = equal->second;
    nodes_[at].high = std::max(nodes_[at].high, static_cast<u32>(most));
  } else {
    for (const auto& [input, factor] : x.terms)
      node.round = std::max(node.round, nodes_[input].round + 1);
    node.argument = x;
    node.high = static_cast<u32>(most);
    known_.emplace(hash, at);
    rounds_ = std::max(rounds_, node.round);
    nodes_.push_back(std::move(node));
  }
  Sum sum;
  sum.terms = {{at, 1}};
  sum.low = least;
  sum.high = most;
  return sum;
}

Sum Circuit::look_up(const Sum& x, const std::function<u64(u64)>& f) {
  expect_within("the argument of a look-up is", x.low, x.high, 0, kMessages - 1);
  Node node;
  i64 least = std::numeric_limits<i64>::max(), most = std::numeric_limits<i64>::min();
  bool identity = true;
  for (i64 v = x.low; v <= x.high; ++v) {
    const i64 value = static_cast<i64>(f(static_cast<u64>(v)));
    node.table[static_cast<std::size_t>(v)] = static_cast<u8>(value);
    least = std::min(least, value), most = std::max(most, value);
    identity = identity && value == v;
  }
  expect_within("the values of a look-up are", least, most, 0, kMessages - 1);
  if (least == most) return Sum(least);
  if (identity && x.is_node()) return x;
  return add_node(x, std::move(node), least, most);
}

Sum Circuit::look_up_signed(const Sum& x, const std::function<i64(i64)>& f) {
  constexpr i64 kHalf = kMessages, kWhole = 2 * kMessages;
  const bool few = x.low <= x.high && x.high - x.low < kMessages;  // wherever they lie
  if (!few) expect_within("the argument of a look-up is", x.low, x.high, 1 - kHalf, kHalf - 1);
  i64 least = f(x.low), most = least;
  for (i64 v = x.low; v <= x.high; ++v) least = std::min(least, f(v)), most = std::max(most, f(v));
  expect_within("the values of a look-up are", least, most, least, least + kMessages - 1);
  if (few)
    return look_up(
               x - x.low,
               [&](u64 v) { return static_cast<u64>(f(static_cast<i64>(v) + x.low) - least); }) +
           least;
  if (least == most) return Sum(least);
  const auto value = [&](i64 v) { return f(v) - least; };
  const i64 sum = value(x.high) + value(x.high - kHalf);  // x takes more than 16 values: both
  Node node;
  for (i64 v = 0; v < kHalf; ++v) {
    const bool above = v <= x.high, below = v - kHalf >= x.low;
    if (above && below && value(v) + value(v - kHalf) != sum)
      throw ParameterError(
          cat("a look-up of ", range(x.low, x.high), " has f(", v, ") + f(", v - kHalf,
              ") = ", f(v) + f(v - kHalf), ", expected ", sum + 2 * least),
          {{"found", f(v) + f(v - kHalf)}, {"expected", sum + 2 * least}});
    const i64 upper = above ? value(v) : below ? sum - value(v - kHalf) : 0;
    node.table[static_cast<std::size_t>(v)] = static_cast<u8>((upper + kWhole) % kWhole);
    node.table[static_cast<std::size_t>(v + kHalf)] =
        static_cast<u8>((sum - upper + kWhole) % kWhole);
  }
  return add_node(x, std::move(node), 0, most - least) + least;
}

}  // namespace crenel::tfhe::radix
