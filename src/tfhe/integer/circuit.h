// A circuit of look-ups on 4-bit messages, as data: built symbolically, simplified while it is
// built, run in as few batched look-ups as its depth. Nothing here knows of ciphertexts.
#pragma once

#include <array>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "crenel/core/types.h"

namespace crenel::tfhe::radix {

inline constexpr u32 kMessages = 16;  // a look-up takes and gives 0..15
/// Least sum of squared factors that a set must allow inputs of look-ups: 17 for 4 a + b of two
/// blocks, 25 where both are the same ciphertext. Circuits use what their set allows beyond.
inline constexpr double kMaxNorm2 = 25.0;

/// An integer linear combination of nodes, and the range that its value is known to lie in.
struct Sum {
  Sum() = default;
  Sum(i64 value) : constant(value), low(value), high(value) {}  // NOLINT: constants are sums

  std::vector<std::pair<u32, i64>> terms;  ///< (node, factor), by node, factors not 0
  i64 constant = 0;
  i64 low = 0, high = 0;

  bool is_constant() const { return terms.empty(); }
  /// Exactly one node, as it is.
  bool is_node() const { return terms.size() == 1 && terms[0].second == 1 && constant == 0; }
  /// Sum of squared factors: the noise, in units of one look-up's.
  double norm2() const;
  /// The same sum, known by its maker to lie in [low, high].
  Sum within(i64 l, i64 h) const;
  /// Do both have the same value, whatever the nodes have? What is known of it may differ.
  bool same_value(const Sum& other) const {
    return constant == other.constant && terms == other.terms;
  }
  u64 hash() const;  ///< of the value
  u64 heap_bytes() const { return terms.capacity() * sizeof terms[0]; }
};

Sum operator+(const Sum& a, const Sum& b);
Sum operator*(i64 factor, const Sum& a);
inline Sum operator-(const Sum& a, const Sum& b) { return a + (-1) * b; }

using Blocks = std::vector<Sum>;

/// Few rotations one after the other, few rounds of many at once, or rounds between: the same
/// results (schedule.h chooses).
enum class Form : u8 { lean, middle, fast };
inline constexpr std::size_t kFormCount = 3;
inline constexpr std::array<Form, kFormCount> kAllForms{Form::lean, Form::middle, Form::fast};
constexpr std::size_t index_of(Form form) { return static_cast<std::size_t>(form); }

/// Values of 0..15 and then of -16..-1. Zero where the argument cannot be; of arguments that may be
/// negative, modulo 32, what keeps f(v) + f(v - 16) the same for all v.
using Table = std::array<u8, 2 * kMessages>;

class Circuit {
 public:
  /// max_norm2: of the set that the circuit is for.
  explicit Circuit(double max_norm2 = kMaxNorm2) : max_norm2_(max_norm2) {}
  double max_norm2() const { return max_norm2_; }

  struct Node {
    Sum argument;   ///< of a look-up
    Table table{};  ///< whole where is_signed(), else its first half
    u32 input = 0;  ///< number of the input, when round is 0
    u32 round = 0;  ///< 0: input; look-ups of round t need rounds below t only
    u32 high = 0;   ///< values are 0..high

    bool is_signed() const { return argument.low < 0; }
  };

  /// The next input, a bootstrapped message in [0, high].
  Sum input(i64 high);
  Blocks inputs(u32 count);  ///< blocks of 2 bits

  /// f(x). Folded without a look-up where f is constant on the range of x, or the identity on a
  /// node; one node for equal arguments and tables. Where its norm2 exceeds max_norm2(), as of
  /// nodes that several operands have in common, those with the largest factors are multiplied by
  /// look-ups of their own first. ParameterError where x or f(x) may leave 0..15.
  Sum look_up(const Sum& x, const std::function<u64(u64)>& f);
  /// f(x), whose values span 15 at most, of any x that takes 16 values or fewer; or of x in -15..15
  /// where f(v) + f(v - 16) is the same for all v in 1..15 that both occur with, as of the sign of
  /// x. f(0) is free. ParameterError for others.
  Sum look_up_signed(const Sum& x, const std::function<i64(i64)>& f);

  const std::vector<Node>& nodes() const { return nodes_; }
  u32 input_count() const { return inputs_; }
  u32 rounds() const { return rounds_; }
  /// Functions looked up; several of one argument may share a rotation (schedule.h).
  u64 look_ups() const { return nodes_.size() - inputs_; }
  /// No look-ups are added from now on: what finds equal ones goes.
  void finish();
  u64 bytes() const;  ///< of host memory, about

 private:
  Sum add_node(const Sum& x, Node node, i64 least, i64 most);
  Sum quieter(const Sum& x);

  std::vector<Node> nodes_;
  std::unordered_multimap<u64, u32> known_;  ///< look-ups by a hash of argument and table
  u32 inputs_ = 0;
  u32 rounds_ = 0;
  double max_norm2_;
};

}  // namespace crenel::tfhe::radix
