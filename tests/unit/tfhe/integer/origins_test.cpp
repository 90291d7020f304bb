// Blocks that are copies of each other, or known messages: what integers tell of them, and that an
// operation on its own looks up as little as it does inside a circuit, where nothing is lost.
#include <map>
#include <tuple>

#include "crenel/core/watch.h"
#include "crenel/tfhe/copies.h"
#include "crenel/tfhe/integer_circuit.h"
#include "support/integer_world.h"
#include "tfhe/integer/division.h"

namespace crenel::tfhe {
namespace {

using test::as_signed;
using test::width_mask;

constexpr u32 kNarrow = 4, kWide = 16;  // bits
constexpr u32 kZero = Integers::kKnown;

class TfheIntegerOrigins : public test::IntegerTest {
 protected:
  IntegerEvaluator integers(CircuitForm form) { return IntegerEvaluator(toy().ev, form); }

  // Of one message each: blocks that are said to be copies are, bit for bit.
  void expect_origins(const Integers& x, const std::vector<u32>& origins) {
    EXPECT_EQ(x.origins(), origins);
    for (u32 j = 0; j < origins.size(); ++j) {
      const Ciphertext& block = x.blocks()[j];
      if (origins[j] >= kZero)
        for (const u64 m : toy().client.decrypt(block)) EXPECT_EQ(m, origins[j] - kZero);
      else
        EXPECT_EQ(words(block), words(x.blocks()[origins[j]]));
    }
  }

  static std::vector<u32> words(const Ciphertext& c) {
    std::vector<u32> out(c.bytes() / sizeof(u32));
    auto& stream = *c.data().payload.stream();
    stream.synchronize();
    stream.copy_out(out.data(), c.data().payload.data(), c.bytes());
    return out;
  }
};

// How many bootstraps a call takes.
template <class Call>
u64 bootstraps(Call call) {
  u64 sum = 0;
  const Watch watch({.progress = [&](u64 done, u64 total, const char*) {
    if (done == total) sum += total;
  }});
  call();
  return sum;
}

TEST_P(TfheIntegerOrigins, OperationsOnWidenedIntegersTakeNoMoreThanOneCircuit) {
  auto rng = test::test_rng();
  using In = const IntegerOperand&;
  using Eager = Integers (IntegerEvaluator::*)(In, In) const;
  using V = const IntegerCircuit::Operand&;
  using Described = IntegerCircuit::Value (IntegerCircuit::*)(V, V);
  struct Operation {
    const char* name;
    Eager eager;
    Described described;
    u64 (*of)(u64, u64);
  };
  const Operation operations[] = {
      {"add", &IntegerEvaluator::add, &IntegerCircuit::add, [](u64 x, u64 y) { return x + y; }},
      {"mul", &IntegerEvaluator::mul, &IntegerCircuit::mul, [](u64 x, u64 y) { return x * y; }},
      {"and", &IntegerEvaluator::bit_and, &IntegerCircuit::bit_and,
       [](u64 x, u64 y) { return x & y; }},
  };
  for (const bool is_signed : {true, false}) {
    const Pair in = few(kNarrow, rng, 3);
    const auto widened = [&](u64 x) {
      return is_signed ? static_cast<u64>(as_signed(x, kNarrow)) & width_mask(kWide) : x;
    };
    Pair wide;
    for (const u64 x : in.a) wide.a.push_back(widened(x));
    for (const u64 x : in.b) wide.b.push_back(widened(x));
    const Integers a = encrypt(in.a, kNarrow, is_signed), b = encrypt(in.b, kNarrow, is_signed);
    for (const CircuitForm form : {CircuitForm::lean, CircuitForm::fast}) {
      const IntegerEvaluator ev = integers(form);
      const Integers x = ev.convert(a, kWide, is_signed), y = ev.convert(b, kWide, is_signed);
      const u32 top = is_signed ? 2 : kZero;
      expect_origins(x, {0, 1, top, top, top, top, top, top});
      const auto expect_few = [&](const char* name, const auto& eager, const auto& described) {
        SCOPED_TRACE(cat(name, is_signed ? ", signed" : ", unsigned", ", ", name_of(form)));
        IntegerCircuit circuit;
        const auto u = circuit.integers(kNarrow, is_signed),
                   v = circuit.integers(kNarrow, is_signed);
        described(circuit, circuit.convert(u, kWide, is_signed),
                  circuit.convert(v, kWide, is_signed));
        const CircuitInput inputs[] = {&a, &b};
        EXPECT_LE(bootstraps([&] { eager(ev); }), bootstraps([&] { ev.run(circuit, inputs); }));
      };
      for (const Operation& op : operations) {
        expect((ev.*op.eager)(x, y), wide, op.of);
        expect_few(
            op.name, [&](const auto& e) { (e.*op.eager)(x, y); },
            [&](auto& c, const auto& u, const auto& v) { c.output((c.*op.described)(u, v)); });
      }
      expect_few(
          "divmod", [&](const auto& e) { e.divmod(x, y); },
          [&](auto& c, const auto& u, const auto& v) {
            const auto both = c.divmod(u, v);
            c.output(both.first), c.output(both.second);
          });
      expect_few(
          "equal", [&](const auto& e) { e.compare(Comparison::equal, x, y); },
          [&](auto& c, const auto& u, const auto& v) {
            c.output(c.compare(Comparison::equal, u, v));
          });
    }
  }
}

// The largest norm2 that a look-up reads where inputs are numbers of so many blocks, of each of
// which all from the fifth on are copies: nodes that look up the same are one.
double loudest(const radix::Circuit& circuit, u32 blocks) {
  using Terms = std::vector<std::pair<u32, i64>>;
  std::map<std::tuple<Terms, i64, radix::Table>, u32> known;
  std::vector<u32> same;
  double worst = 0;
  for (u32 at = 0; at < circuit.nodes().size(); ++at) {
    const radix::Circuit::Node& node = circuit.nodes()[at];
    if (node.round == 0) {
      same.push_back(node.input - (node.input % blocks > 4 ? node.input % blocks - 4 : 0));
      continue;
    }
    std::map<u32, i64> factors;
    for (const auto& [input, factor] : node.argument.terms) factors[same[input]] += factor;
    Terms terms;
    double norm2 = 0;
    for (const auto& [input, factor] : factors) {
      if (factor != 0) terms.emplace_back(input, factor);
      norm2 += static_cast<double>(factor * factor);
    }
    worst = std::max(worst, norm2);
    const auto key = std::make_tuple(terms, node.argument.constant, node.table);
    same.push_back(known.try_emplace(key, at).first->second);
  }
  return worst;
}

// docs/theory/tfhe.md, "Noise that ciphertexts carry", has the numbers.
TEST(TfheIntegerCopies, AsInputsOfTheirOwnAreLouderThanTheSetAllows) {
  constexpr u32 kBlocks = 32;
  constexpr double kNorm2 = 66;  // of lut4-128
  for (const bool copies : {false, true}) {
    radix::Circuit circuit(kNorm2);
    const radix::Blocks inputs = circuit.inputs(2 * kBlocks);
    radix::Blocks x, y;
    for (u32 j = 0; j < kBlocks; ++j) {
      const u32 at = copies ? std::min(j, 4u) : j;
      x.push_back(inputs[at]), y.push_back(inputs[kBlocks + at]);
    }
    radix::divide_signed(circuit, x, y, true, radix::Form::lean);
    const double found = loudest(circuit, kBlocks);
    EXPECT_TRUE(copies ? found <= kNorm2 : found == 225) << found;
  }
}

TEST_P(TfheIntegerOrigins, DivisionOfWidenedIntegers) {
  auto rng = test::test_rng();
  const Pair in = few(kNarrow, rng, 3);
  const IntegerEvaluator ev = integers(CircuitForm::lean);
  const Integers x = ev.convert(encrypt(in.a, kNarrow, true), 8, true),
                 y = ev.convert(encrypt(in.b, kNarrow, true), 8, true);
  const auto quotient = [](u64 u, u64 v) {
    const i64 a = as_signed(u, kNarrow), b = as_signed(v, kNarrow);
    return static_cast<u64>(b == 0 ? -1 : a / b - (a % b != 0 && (a < 0) != (b < 0)));
  };
  expect(ev.div(x, y), in, quotient);
}

TEST_P(TfheIntegerOrigins, GoAlongWithCopiesAndParts) {
  auto rng = test::test_rng();
  const Pair in = few(kNarrow, rng, 3);
  const IntegerEvaluator ev = integers(CircuitForm::lean);
  const Integers narrow = encrypt(in.a, kNarrow, true);
  EXPECT_TRUE(narrow.origins().empty());
  const Integers x = ev.convert(narrow, 10, true);
  const std::vector<u32> copies = {0, 1, 2, 2, 2};
  expect_origins(x.clone(), copies);
  expect_origins(x.slice(1, 2), copies);
  expect_origins(x.take(std::vector<u64>{2, 0, 0}), copies);
  expect_origins(copy_to(toy().context, x), copies);
  expect_origins(ev.bit_not(x), copies);
  expect_origins(ev.shift_left(x, 2), {kZero, 1, 2, 3, 3});
  expect_origins(ev.convert(x, 6, true), {0, 1, 2});
  // What holds in all parts.
  const Integers other = encrypt(in.b, 10, true),
                 known = ev.convert(ev.convert(other, 2, false), 10, true),
                 shifted = ev.shift_right(other, 6);
  expect_origins(known, {0, kZero, kZero, kZero, kZero});
  expect_origins(shifted, {0, 1, 2, 2, 2});
  const auto joined = [](const Integers& a, const Integers& b) {
    const Integers* parts[] = {&a, &b};
    return concatenate(parts);
  };
  expect_origins(joined(x, x), copies);
  expect_origins(joined(x, shifted), copies);
  expect_origins(joined(x, other), {0, 1, 2, 3, 4});
  expect_origins(joined(known, known), {0, kZero, kZero, kZero, kZero});
  expect_origins(joined(known, x), copies);
  expect_origins(joined(ev.shift_left(x, 2), x), {0, 1, 2, 3, 3});
}

// Arrays of which everything is known are operands as others are.
TEST_P(TfheIntegerOrigins, KnownArraysAreOperands) {
  auto rng = test::test_rng();
  const Pair in = few(8, rng, 3);
  const IntegerEvaluator ev = integers(CircuitForm::automatic);
  const Integers a = encrypt(in.a, 8, false), b = encrypt(in.b, 8, false);
  const Integers zero = ev.convert(ev.convert(ev.shift_left(a, 6), 6, false), 8, false),
                 five = ev.add(zero, 5);
  expect_origins(zero, {kZero, kZero, kZero, kZero});
  expect_origins(five, {kZero + 1, kZero + 1, kZero, kZero});
  expect(ev.add(b, five), in, [](u64, u64 y) { return y + 5; });
  expect(ev.mul(five, five), in, [](u64, u64) { return u64(25); });
  expect(ev.sub(zero, five), in, [](u64, u64) { return ~u64(4); });
  expect(ev.rem(b, five), in, [](u64, u64 y) { return y % 5; });
  expect_flags(ev.compare(Comparison::less, b, five), in, [](u64, u64 y) { return y < 5; });
  const auto [quotient, rest] = ev.divmod(b, zero);
  expect(quotient, in, [](u64, u64) { return ~u64(0); });
  expect(rest, in, [](u64, u64 y) { return y; });
  expect(ev.shift_left(b, zero), in, [](u64, u64 y) { return y; });
  expect(ev.leading_zeros(five), in, [](u64, u64) { return u64(5); });
  expect(ev.look_up(five, std::vector<u64>{0, 1, 2, 3, 4, 77}, 8, false), in,
         [](u64, u64) { return u64(77); });
}

TEST_P(TfheIntegerOrigins, OthersAreRefused) {
  const auto integers_of = [&](std::vector<u32> origins) {
    std::vector<Ciphertext> blocks;
    for (u32 j = 0; j < 3; ++j) blocks.push_back(toy().client.encrypt(std::vector<u64>{1}));
    return Integers(std::move(blocks), 6, false, std::move(origins));
  };
  EXPECT_EQ(integers_of({0, 0, kZero + 3}).origins().size(), 3u);
  for (const std::vector<u32>& bad : std::vector<std::vector<u32>>{
           {0, 1}, {0, 1, 2, 3}, {1, 1, 2}, {0, 0, 1}, {0, kZero, 1}, {0, 1, 3}, {0, 1, kZero + 4}})
    EXPECT_THROW(integers_of(bad), ParameterError);
}

CRENEL_DEVICE_SUITE(TfheIntegerOrigins);

}  // namespace
}  // namespace crenel::tfhe
