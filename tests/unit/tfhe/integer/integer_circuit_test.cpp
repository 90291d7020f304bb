// Several operations as one circuit: against the operations one by one, what they share, errors.
#include "crenel/tfhe/integer_circuit.h"

#include <optional>

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
