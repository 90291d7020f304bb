// Several operations as one circuit: against the operations one by one, what they share, errors.
#include "crenel/tfhe/integer_circuit.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string>

#include "crenel/core/error.h"
#include "support/integer_world.h"
#include "support/radix_model.h"
#include "tfhe/integer/recorded.h"

namespace crenel::tfhe {
namespace {

using test::as_signed;
using test::width_mask;
using Value = IntegerCircuit::Value;

/// A token transfer: what payers and payees have afterwards, and where the amount was moved.
IntegerCircuit transfer(u32 bits) {
  IntegerCircuit circuit;
  const Value payer = circuit.integers(bits), payee = circuit.integers(bits),
              amount = circuit.integers(bits);
  const Value enough = circuit.compare(Comparison::greater_equal, payer, amount);
  const Value moved = circuit.select(enough, amount, u64(0));
  circuit.output(circuit.sub(payer, moved));
  circuit.output(circuit.add(payee, moved));
  circuit.output(enough);
  return circuit;
}

/// Outputs of a circuit of integers of one width, in the clear; bits as integers of one block.
std::vector<std::vector<u64>> computed(const IntegerCircuit& circuit, radix::Form form,
                                       double max_norm2,
                                       const std::vector<std::vector<u64>>& inputs, u32 bits) {
  radix::Circuit built(max_norm2);
  std::vector<radix::Blocks> given;
  std::vector<std::vector<u64>> messages;
  for (const auto& input : inputs) {
    given.push_back(built.inputs(bits / 2));
    for (auto& block : test::radix_blocks(input, bits)) messages.push_back(std::move(block));
  }
  const radix::Blocks all = circuit.state().build(built, form, given);
  test::expect_runnable(built, all);
  const test::RadixModel model(built, messages);
  std::vector<std::vector<u64>> found;
  auto at = all.begin();
  for (const auto& type : circuit.outputs()) {
    const auto count = type.is_bit() ? 1 : static_cast<std::ptrdiff_t>(type.bits / 2);
    found.push_back(model.integers(radix::Blocks(at, at + count), inputs[0].size()));
    at += count;
  }
  return found;
}

TEST(TfheIntegerCircuit, TransfersOfAllSetsAndForms) {
  test::Rng rng = test::test_rng();
  for (const u32 bits : {2u, 4u, 8u, 14u, 32u, 64u}) {
    const u64 mask = width_mask(bits);
    std::vector<u64> payer, amount, payee;
    test::integer_pairs(payer, amount, bits, 100, rng);
    for (const u64 edge : {u64(0), mask, mask - 1, u64(1)}) {  // nothing, all, equal, overflow
      payer.push_back(edge), amount.push_back(edge);
      payer.push_back(edge), amount.push_back((edge + 1) & mask);
    }
    for (std::size_t i = 0; i < payer.size(); ++i) payee.push_back(i % 3 ? rng() & mask : mask);
    const IntegerCircuit circuit = transfer(bits);
    for (const double norm2 : {25.0, 30.0, 66.0})
      for (const radix::Form form : radix::kAllForms) {
        const auto found = computed(circuit, form, norm2, {payer, payee, amount}, bits);
        for (std::size_t i = 0; i < payer.size(); ++i) {
          const bool enough = payer[i] >= amount[i];
          const u64 moved = enough ? amount[i] : 0;
          ASSERT_EQ(found[0][i], payer[i] - moved) << bits << " bits, form " << int(form);
          ASSERT_EQ(found[1][i], (payee[i] + moved) & mask) << bits << " bits, form " << int(form);
          ASSERT_EQ(found[2][i], u64(enough)) << bits << " bits, form " << int(form);
        }
      }
  }
}

/// A program of random operations, and what it computes of each element, in the clear.
class RandomProgram {
 public:
  using Column = std::vector<u64>;

  RandomProgram(u32 bits, bool is_signed, std::size_t size, test::Rng& rng)
      : rng_(rng), bits_(bits), is_signed_(is_signed), size_(size) {
    std::vector<u64> a, b;
    test::integer_pairs(a, b, bits, static_cast<u32>(size), rng);
    for (const std::vector<u64>& column : {a, b}) {
      inputs.push_back(Column(column.end() - static_cast<std::ptrdiff_t>(size), column.end()));
      numbers_.emplace_back(circuit.integers(bits, is_signed), inputs.back());
    }
    flip();
    const u64 operations = 2 + rng() % 8;
    for (u64 i = 0; i < operations; ++i) step();
    for (const auto& [value, column] : {numbers_.back(), some(numbers_), bits_known_.back()}) {
      circuit.output(value);
      expected.push_back(column);
    }
  }

  IntegerCircuit circuit;
  std::vector<Column> inputs, expected;
  std::string text;  ///< the numbers of the operations

 private:
  using Known = std::pair<Value, Column>;

  const Known& some(const std::vector<Known>& of) { return of[rng_() % of.size()]; }
  template <class F>
  Column each(const F& f) const {
    Column out(size_);
    for (std::size_t i = 0; i < size_; ++i) out[i] = f(i) & width_mask(bits_);
    return out;
  }
  void flip() {  // a bit of numbers
    const Known a = some(numbers_), b = some(numbers_);
    const Comparison comparison = test::kComparisons[rng_() % 6];
    bits_known_.emplace_back(
        circuit.compare(comparison, a.first, b.first), each([&](std::size_t i) {
          return u64(test::holds(comparison, a.second[i], b.second[i], bits_, is_signed_));
        }));
  }
  void step() {
    const u64 kind = rng_() % 20;
    text += cat(" ", kind);
    const Known a = some(numbers_), b = some(numbers_), c = some(bits_known_),
                d = some(bits_known_);
    const Column &x = a.second, &y = b.second, &p = c.second, &q = d.second;
    const u64 known = rng_() & (width_mask(bits_) >> u32(is_signed_));
    const u32 count = static_cast<u32>(rng_() % bits_);
    const auto less = [&](std::size_t i) {
      return test::holds(Comparison::less, x[i], y[i], bits_, is_signed_);
    };
    const auto number = [&](const Value& value, const auto& f) {
      numbers_.emplace_back(value, each(f));
    };
    const auto bit = [&](const Value& value, const auto& f) {
      bits_known_.emplace_back(value, each(f));
    };
    using I = std::size_t;
    switch (kind) {
      case 0:
        return number(circuit.add(a.first, b.first), [&](I i) { return x[i] + y[i]; });
      case 1:
        return number(circuit.sub(a.first, b.first), [&](I i) { return x[i] - y[i]; });
      case 2:
        return number(circuit.sub(known, a.first), [&](I i) { return known - x[i]; });
      case 3:
        if (bits_ > 8) return flip();
        return number(circuit.mul(a.first, b.first), [&](I i) { return x[i] * y[i]; });
      case 4:
        return number(circuit.select(c.first, a.first, b.first),
                      [&](I i) { return p[i] != 0 ? x[i] : y[i]; });
      case 5:
        return number(circuit.select(c.first, a.first, u64(0)),
                      [&](I i) { return p[i] != 0 ? x[i] : 0; });
      case 6:
        return number(circuit.select(c.first, known, a.first),
                      [&](I i) { return p[i] != 0 ? known : x[i]; });
      case 7:
        return number(circuit.min(a.first, b.first), [&](I i) { return less(i) ? x[i] : y[i]; });
      case 8:
        return number(circuit.min_max(a.first, b.first).second,
                      [&](I i) { return less(i) ? y[i] : x[i]; });
      case 9:
        return number(circuit.bit_xor(a.first, circuit.bit_not(b.first)),
                      [&](I i) { return x[i] ^ ~y[i]; });
      case 10:
        return number(circuit.shift_left(a.first, count), [&](I i) { return x[i] << count; });
      case 11:
        return number(circuit.rotate_left(a.first, count), [&](I i) {
          return count == 0 ? x[i] : x[i] << count | x[i] >> (bits_ - count);
        });
      case 12: {
        const auto [sum, overflow] = circuit.add_overflow(a.first, b.first);
        number(sum, [&](I i) { return x[i] + y[i]; });
        return bit(overflow, [&](I i) {
          const u64 z = (x[i] + y[i]) & width_mask(bits_), top = u64(1) << (bits_ - 1);
          return u64(is_signed_ ? ((x[i] ^ z) & (y[i] ^ z) & top) != 0 : z < x[i]);
        });
      }
      case 13:
        return bit(circuit.select(c.first, d.first, circuit.not_(c.first)),
                   [&](I i) { return p[i] != 0 ? q[i] : 1; });
      case 14: {
        const Value pair[] = {c.first, d.first};
        return bit(circuit.gate(Gate::xor_, pair), [&](I i) { return p[i] ^ q[i]; });
      }
      case 15:
        return number(circuit.convert(c.first, bits_, is_signed_), [&](I i) { return p[i]; });
      case 16:
        return number(circuit.bit_not(a.first), [&](I i) { return ~x[i]; });
      case 17: {
        if (bits_ > 6 || is_signed_) return flip();
        const auto [quotient, rest] = circuit.divmod(a.first, circuit.bit_or(b.first, u64(1)));
        number(quotient, [&](I i) { return x[i] / (y[i] | 1); });
        return number(rest, [&](I i) { return x[i] % (y[i] | 1); });
      }
      case 18: {
        const Known e = some(bits_known_);
        const Value three[] = {c.first, d.first, e.first};
        return bit(circuit.gate(Gate::majority, three),
                   [&](I i) { return u64(p[i] + q[i] + e.second[i] >= 2); });
      }
      default:
        return flip();
    }
  }

  test::Rng& rng_;
  u32 bits_;
  bool is_signed_;
  std::size_t size_;
  std::vector<Known> numbers_, bits_known_;
};

TEST(TfheIntegerCircuit, RandomProgramsOfAllSetsAndForms) {
  test::Rng rng = test::test_rng();
  for (u32 times = 0; times < 60; ++times) {
    const u32 bits = std::array{2u, 4u, 6u, 8u, 16u}[rng() % 5];
    const RandomProgram program(bits, rng() % 2 != 0, 12, rng);
    for (const double norm2 : {25.0, 30.0, 66.0})
      for (const radix::Form form : radix::kAllForms)
        ASSERT_EQ(computed(program.circuit, form, norm2, program.inputs, bits), program.expected)
            << bits << " bits, form " << int(form) << ", operations" << program.text;
  }
}

TEST(TfheIntegerCircuit, OperationsShareRoundsAndLookUps) {
  const auto cost = [](const IntegerCircuit& circuit) {
    return circuit.cost(CircuitForm::fast, 1, 132, 66);
  };
  // one by one: 3 rounds of the comparison, 1 of the choice, 4 of the additions
  const IntegerCost moved = cost(transfer(64));
  EXPECT_EQ(moved.depth, 5u);
  EXPECT_LE(moved.bootstraps, 270u);
  // a comparison beside a difference of the same numbers: two look-ups more, of the top span
  IntegerCircuit difference, both;
  for (IntegerCircuit* c : {&difference, &both}) {
    const Value a = c->integers(64), b = c->integers(64);
    c->output(c->sub(a, b));
    if (c == &both) c->output(c->compare(Comparison::greater_equal, a, b));
  }
  EXPECT_EQ(cost(both).depth, cost(difference).depth);
  EXPECT_LE(cost(both).bootstraps, cost(difference).bootstraps + 4);
  // the same operation twice is one; what no output needs is none
  IntegerCircuit twice;
  const Value x = twice.integers(64), y = twice.integers(64);
  twice.divmod(x, y);
  twice.output(twice.sub(x, y));
  twice.output(twice.sub(x, y));
  EXPECT_EQ(cost(twice).bootstraps, cost(difference).bootstraps);
  // one operation costs what it costs alone
  for (const CircuitForm form : {CircuitForm::lean, CircuitForm::fast}) {
    const IntegerCost alone = integer_cost("sub", 64, false, form, 1, 132, 66);
    EXPECT_EQ(difference.cost(form, 1, 132, 66).rounds, alone.rounds);
  }
}

// Operands that have blocks or bits in common, as of an extended sign, whose errors are one: sums
// of them are as quiet as any other (RadixModel).
TEST(TfheIntegerCircuit, ValuesThatMeetAgain) {
  test::Rng rng = test::test_rng();
  for (const u32 bits : {2u, 4u, 8u}) {
    const u32 wide = 24;
    const u64 mask = width_mask(bits), wide_mask = width_mask(wide);
    std::vector<u64> a, b;
    test::integer_pairs(a, b, bits, 60, rng);
    IntegerCircuit c;
    const Value x = c.integers(bits), y = c.integers(bits);
    const Value bit = c.compare(Comparison::less, x, y);
    const auto extended = [&](const Value& v) {
      return c.convert(c.convert(v, bits, true), wide, true);
    };
    const Value sx = c.convert(x, bits, true), far = c.convert(sx, wide, true), by = extended(y);
    // known blocks at the top: of both choices, of a divisor that may be 0, of a count that is not
    const Value ux = c.convert(x, wide, false), uy = c.convert(y, wide, false);
    for (const Value& output :
         {c.select(bit, c.convert(bit, bits, false), y), c.select(bit, x, c.bit_not(x)),
          c.add(y, c.select(bit, c.convert(bit, bits, false), u64(0))),
          c.sub(y, c.select(bit, c.bit_not(y), u64(0))), c.min(x, c.bit_not(x)), far,
          c.div(far, by), c.add(far, by), c.mul(far, u64(0x777777)), c.leading_zeros(far),
          c.shift_left(c.convert(far, wide, false), c.convert(far, wide, false)),
          c.add(c.select(bit, ux, uy), c.select(bit, uy, ux)),
          c.rem(ux, c.convert(bit, wide, false)), c.shift_right(far, c.bit_not(c.count_ones(x)))})
      c.output(output);
    c.output(c.select(bit, bit, c.compare(Comparison::equal, x, y)));
    c.output(c.compare(Comparison::less, far, c.bit_not(far)));
    c.output(c.compare(Comparison::equal, far, by));
    for (const double norm2 : {25.0, 30.0, 66.0})
      for (const radix::Form form : radix::kAllForms) {
        const auto found = computed(c, form, norm2, {a, b}, bits);
        for (std::size_t i = 0; i < a.size(); ++i) {
          SCOPED_TRACE(cat(a[i], ", ", b[i], " of ", bits, " bits, form ", int(form)));
          const u64 less = a[i] < b[i], not_a = ~a[i] & mask;
          const i64 s = as_signed(a[i], bits), t = as_signed(b[i], bits);
          const auto word = [&](i64 v) { return static_cast<u64>(v) & wide_mask; };
          ASSERT_EQ(found[0][i], less ? 1 : b[i]);
          ASSERT_EQ(found[1][i], less ? a[i] : not_a);
          ASSERT_EQ(found[2][i], (b[i] + less) & mask);
          ASSERT_EQ(found[3][i], (less ? b[i] - (~b[i] & mask) : b[i]) & mask);
          ASSERT_EQ(found[4][i], std::min(a[i], not_a));
          ASSERT_EQ(found[5][i], word(s));
          if (t != 0) {
            const i64 floored = s / t - ((s % t != 0 && (s < 0) != (t < 0)) ? 1 : 0);
            ASSERT_EQ(found[6][i], word(floored));
          }
          ASSERT_EQ(found[7][i], word(s + t));
          ASSERT_EQ(found[8][i], word(s * 0x777777));
          ASSERT_EQ(found[9][i], u64(std::countl_zero(word(s)) - 40));
          ASSERT_EQ(found[10][i], word(s) < wide ? word(s) << word(s) & wide_mask : 0);
          ASSERT_EQ(found[11][i], a[i] + b[i]);
          ASSERT_EQ(found[12][i], less ? 0 : a[i]);
          ASSERT_EQ(found[13][i], s < 0 ? wide_mask : 0);
          ASSERT_EQ(found[14][i], u64(a[i] <= b[i]));
          ASSERT_EQ(found[15][i], u64(s < 0));
          ASSERT_EQ(found[16][i], u64(s == t));
        }
      }
  }
}

class TfheIntegerCircuits : public test::IntegerTest {
 protected:
  std::vector<CircuitOutput> run(const IntegerCircuit& circuit, std::vector<CircuitInput> inputs) {
    return integers().run(circuit, inputs);
  }
};

// Everything that a circuit has, of one pair of arrays, against the operations of the evaluator.
TEST_P(TfheIntegerCircuits, AreTheOperationsOneByOne) {
  auto rng = test::test_rng();
  const u32 bits = exhaustive() ? 6 : 4;
  for (const bool is_signed : {false, true}) {
    const Pair in = few(bits, rng, 6);
    const Integers a = encrypt(in.a, bits, is_signed), b = encrypt(in.b, bits, is_signed);
    const IntegerEvaluator ev = integers();
    IntegerCircuit c;
    const Value x = c.integers(bits, is_signed), y = c.integers(bits, is_signed);
    std::vector<Integers> numbers;
    std::vector<Ciphertext> flags;
    const auto same = [&](const Value& value, Integers expected) {
      c.output(value);
      numbers.push_back(std::move(expected));
    };
    same(c.mul(x, y), ev.mul(a, b));
    same(c.neg(x), ev.neg(a));
    same(c.abs(x), ev.abs(a));
    same(c.sub(x, u64(1)), ev.sub(a, u64(1)));
    same(c.sub(u64(1), x), ev.sub(u64(1), a));
    same(c.add(u64(3), x), ev.add(u64(3), a));
    same(c.min(x, y), ev.min(a, b));
    same(c.min_max(x, y).second, ev.max(a, b));
    same(c.div(x, y), ev.div(a, b));
    same(c.rem(x, y), ev.rem(a, b));
    same(c.bit_or(x, c.bit_not(y)), ev.bit_or(a, ev.bit_not(b)));
    same(c.bit_xor(x, u64(1)), ev.bit_xor(a, u64(1)));
    same(c.shift_right(x, 1), ev.shift_right(a, 1));
    same(c.shift_left(x, 3), ev.shift_left(a, 3));
    same(c.rotate_right(x, 1), ev.rotate_right(a, 1));
    same(c.rotate_right(x, 0), ev.rotate_right(a, 0));
    same(c.leading_zeros(x), ev.leading_zeros(a));
    same(c.trailing_zeros(x), ev.trailing_zeros(a));
    same(c.count_ones(x), ev.count_ones(a));
    same(c.convert(x, 10, is_signed), ev.convert(a, 10, is_signed));
    const Value count = c.convert(y, bits, false);
    const Integers by = ev.convert(b, bits, false);
    same(c.shift_left(x, count), ev.shift_left(a, by));
    same(c.shift_right(x, count), ev.shift_right(a, by));
    same(c.rotate_left(x, count), ev.rotate_left(a, by));
    same(c.rotate_right(x, count), ev.rotate_right(a, by));
    const std::vector<u64> table{3, 1, 2};
    same(c.look_up(count, table, 2, false), ev.look_up(by, table, 2, false));
    const Value less = c.compare(Comparison::less, x, y),
                is_one = c.compare(Comparison::equal, x, u64(1));
    const Ciphertext l = ev.compare(Comparison::less, a, b),
                     e = ev.compare(Comparison::equal, a, u64(1));
    same(c.select(less, x, y), ev.select(l, a, b));
    same(c.select(less, c.add(y, x), x), ev.select(l, ev.add(b, a), a));
    same(c.select(less, c.sub(x, y), x), ev.select(l, ev.sub(a, b), a));
    same(c.add(c.select(less, x, u64(0)), y), ev.add(ev.select(l, a, u64(0)), b));
    same(c.convert(less, 4, false), ev.sum_messages(std::vector{&l}, 4));
    const auto flag = [&](const Value& value, Ciphertext expected) {
      c.output(value);
      flags.push_back(std::move(expected));
    };
    flag(c.add_overflow(x, y).second, ev.add_overflow(a, b).second);
    flag(c.sub_overflow(x, y).second, ev.sub_overflow(a, b).second);
    flag(c.mul_overflow(x, y).second, ev.mul_overflow(a, b).second);
    const Evaluator& gates = ev.evaluator();
    const std::vector<Value> two{less, is_one};
    for (const Gate gate : {Gate::and_, Gate::or_, Gate::nand, Gate::nor, Gate::xor_, Gate::xnor})
      flag(c.gate(gate, two), gates.gate(gate, std::vector{&l, &e}));
    flag(c.not_(less), gates.not_(l));
    flag(c.select(is_one, less, c.not_(less)), gates.mux(e, l, gates.not_(l)));
    const auto found = run(c, {&a, &b});
    ASSERT_EQ(found.size(), numbers.size() + flags.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const auto& integers = std::get<Integers>(found[i]);
      EXPECT_EQ(integers.is_signed(), numbers[i].is_signed()) << "output " << i;
      EXPECT_EQ(open(integers), open(numbers[i])) << "output " << i;
    }
    for (std::size_t i = 0; i < flags.size(); ++i) {
      const auto& bit = std::get<Ciphertext>(found[numbers.size() + i]);
      EXPECT_LE(bit.bound(), 2u);
      EXPECT_EQ(toy().client.decrypt(bit), toy().client.decrypt(flags[i])) << "flag " << i;
    }
  }
}

TEST_P(TfheIntegerCircuits, TransfersFollowEachOther) {
  auto rng = test::test_rng();
  const u32 bits = exhaustive() ? 64 : 8;
  const u64 mask = width_mask(bits);
  std::vector<u64> have{0, mask, 5, rng() & mask}, get{mask, mask, 0, rng() & mask},
      ask{1, mask, 5, rng() & mask};
  Integers payer = encrypt(have, bits, false), payee = encrypt(get, bits, false);
  const Integers amount = encrypt(ask, bits, false);
  const IntegerCircuit circuit = transfer(bits);
  for (int times = 0; times < 2; ++times) {  // results have the noise of one look-up
    auto found = run(circuit, {&payer, &payee, &amount});
    const std::vector<u64> enough = toy().client.decrypt(std::get<Ciphertext>(found[2]));
    payer = std::move(std::get<Integers>(found[0]));
    payee = std::move(std::get<Integers>(found[1]));
    for (std::size_t i = 0; i < have.size(); ++i) {
      ASSERT_EQ(enough[i], u64(have[i] >= ask[i]));
      if (enough[i] != 0) get[i] = (get[i] + ask[i]) & mask, have[i] -= ask[i];
    }
    ASSERT_EQ(open(payer), have);
    ASSERT_EQ(open(payee), get);
  }
  for (const auto& block : payer.blocks())
    EXPECT_DOUBLE_EQ(block.noise_variance(), payee.blocks()[0].noise_variance());
}

TEST_P(TfheIntegerCircuits, Refusals) {
  const Integers a = encrypt({1, 2}, 4, false), narrow = encrypt({1, 2}, 2, false),
                 other = encrypt({1, 2, 3}, 4, false);
  IntegerCircuit c;
  const Value x = c.integers(4), y = c.integers(4), is_signed = c.integers(4, true), bit = c.bit();
  EXPECT_THROW(c.add(x, is_signed), StateError);
  EXPECT_THROW(c.add(x, bit), StateError);
  EXPECT_THROW(c.add(u64(1), u64(2)), ParameterError);
  EXPECT_THROW(c.compare(Comparison::less, x, u64(16)), ParameterError);
  EXPECT_THROW(c.div(x, u64(0)), ParameterError);
  EXPECT_THROW(c.shift_left(x, 4), ParameterError);
  EXPECT_THROW(c.rotate_right(x, 4), ParameterError);
  EXPECT_THROW(c.shift_left(x, is_signed), StateError);
  EXPECT_THROW(c.look_up(is_signed, std::vector<u64>{1}, 2, false), StateError);
  EXPECT_THROW(c.select(x, x, y), StateError);
  EXPECT_THROW(c.select(bit, bit, x), StateError);
  EXPECT_THROW(c.not_(x), StateError);
  EXPECT_THROW(c.gate(Gate::and_, std::vector{bit}), ParameterError);
  EXPECT_THROW(c.integers(3), ParameterError);
  EXPECT_THROW(c.cost(CircuitForm::fast), ParameterError);  // no output
  IntegerCircuit one;
  const Value z = one.integers(4);
  EXPECT_THROW(c.add(x, z), StateError);
  EXPECT_THROW(c.output(z), StateError);
  EXPECT_THROW(c.add(Value(), x), StateError);
  for (int times = 0; times < 16; ++times) {  // whose memory the next circuit may have
    std::optional<IntegerCircuit> gone(std::in_place);
    Value last = gone->integers(4);
    for (int i = 0; i < 8; ++i) last = gone->add(last, u64(1));
    gone.reset();
    IntegerCircuit next;
    next.integers(4);
    EXPECT_THROW(next.add(last, u64(1)), StateError);
    EXPECT_THROW(next.output(last), StateError);
  }
  EXPECT_THROW(run(one, {&a}), ParameterError);
  one.output(one.add(z, u64(1)));
  EXPECT_THROW(run(one, {}), ParameterError);
  EXPECT_THROW(run(one, {&a, &a}), ParameterError);
  EXPECT_THROW(run(one, {&narrow}), StateError);
  EXPECT_THROW(run(one, {&a.blocks()[0]}), StateError);
  IntegerCircuit two;
  two.output(two.add(two.integers(4), two.integers(4)));
  EXPECT_THROW(run(two, {&a, &other}), StateError);
  EXPECT_EQ(open(std::get<Integers>(run(one, {&a})[0])), (std::vector<u64>{2, 3}));  // unharmed
}

CRENEL_DEVICE_SUITE(TfheIntegerCircuits);

}  // namespace
}  // namespace crenel::tfhe
