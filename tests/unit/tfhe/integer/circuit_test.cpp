// Radix circuits on plain integers: results, ranges, noise, and the stated costs.
#include <gtest/gtest.h>

#include <algorithm>

#include "crenel/core/error.h"
#include "support/integer_values.h"
#include "support/radix_model.h"
#include "tfhe/integer/carries.h"
#include "tfhe/integer/operations.h"

namespace crenel::tfhe::radix {
namespace {

using test::as_signed;
using test::holds;
using test::kComparisons;
using test::kEveryForm;
using test::width_mask;

constexpr u32 kCircuitWidths[] = {2, 4, 6, 8, 10, 12, 14, 16, 26, 32, 62, 64};

// Of sets: the least that integers take, pairs of blocks, choices by a bit, room for all.
constexpr double kNorms[] = {25, 34, 66, 88};

// Runs a circuit of two integers and compares with `expected` modulo 2^bits.
template <class Build, class Expected>
void expect_binary(u32 bits, Build build, Expected expected, double max_norm2 = kMaxNorm2) {
  SCOPED_TRACE(bits);
  test::Rng rng = test::test_rng();
  std::vector<u64> a, b;
  if (bits <= 6) {
    for (u64 x = 0; x >> bits == 0; ++x)
      for (u64 y = 0; y >> bits == 0; ++y) a.push_back(x), b.push_back(y);
  } else {
    test::integer_pairs(a, b, bits, 200, rng);
  }
  Circuit circuit(max_norm2);
  const Blocks x = circuit.inputs(bits / 2), y = circuit.inputs(bits / 2);
  const Blocks out = build(circuit, x, y);
  auto inputs = test::radix_blocks(a, bits);
  for (auto& block : test::radix_blocks(b, bits)) inputs.push_back(std::move(block));
  test::expect_runnable(circuit, out);
  const std::vector<u64> found = test::RadixModel(circuit, inputs).integers(out, a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(found[i], u64(expected(a[i], b[i])) & width_mask(bits)) << a[i] << ' ' << b[i];
}

// The same for all forms: build(circuit, x, y, form).
template <class Build, class Expected>
void expect_forms(u32 bits, Build build, Expected expected) {
  for (const double norm2 : kNorms)
    for (const Form form : kEveryForm)
      expect_binary(
          bits, [&](Circuit& c, const Blocks& x, const Blocks& y) { return build(c, x, y, form); },
          expected, norm2);
}

TEST(TfheRadixCircuit, AddSubtractMultiply) {
  for (const u32 bits : kCircuitWidths) {
    expect_forms(bits, radix::add, [](u64 x, u64 y) { return x + y; });
    expect_forms(
        bits,
        [](Circuit& c, const Blocks& x, const Blocks& y, Form f) { return subtract(c, x, y, f); },
        [](u64 x, u64 y) { return x - y; });
    expect_forms(bits, radix::multiply, [](u64 x, u64 y) { return x * y; });
    expect_forms(
        bits,
        [&](Circuit& c, const Blocks&, const Blocks& y, Form f) {
          return subtract(c, constant_blocks(u64(0), bits), y, f);
        },
        [](u64, u64 y) { return 0 - y; });
  }
}

TEST(TfheRadixCircuit, Scalars) {
  test::Rng rng = test::test_rng();
  for (const u32 bits : kCircuitWidths) {
    std::vector<u64> scalars{0, 1, 2, 3, 4, 5, 7, 10, ~u64(0), ~u64(1), u64(1) << (bits - 1)};
    for (int i = 0; i < 6; ++i) scalars.push_back(rng());
    for (const u64 k : scalars) {
      SCOPED_TRACE(k);
      const Blocks known = constant_blocks(k, bits);
      expect_forms(
          bits,
          [&](Circuit& c, const Blocks& x, const Blocks&, Form f) { return add(c, x, known, f); },
          [&](u64 x, u64) { return x + k; });
      expect_forms(
          bits,
          [&](Circuit& c, const Blocks& x, const Blocks&, Form f) {
            return multiply(c, known, x, f);
          },
          [&](u64 x, u64) { return x * k; });
    }
  }
}

TEST(TfheRadixCircuit, Compare) {
  test::Rng rng = test::test_rng();
  for (const u32 bits : kCircuitWidths) {
    for (const bool is_signed : {false, true}) {
      for (const Comparison comparison : kComparisons) {
        SCOPED_TRACE(static_cast<int>(comparison));
        expect_forms(
            bits,
            [&](Circuit& c, const Blocks& x, const Blocks& y, Form f) {
              return Blocks{compare(c, comparison, x, y, is_signed, f)};
            },
            [&](u64 x, u64 y) { return holds(comparison, x, y, bits, is_signed); });
        const u64 top = u64(1) << (bits - 1);
        for (const u64 k : {u64(0), top, top - 1, width_mask(bits), rng() & width_mask(bits)})
          expect_forms(
              bits,
              [&](Circuit& c, const Blocks& x, const Blocks&, Form f) {
                return Blocks{compare(c, comparison, x, constant_blocks(k, bits), is_signed, f)};
              },
              [&](u64 x, u64) { return holds(comparison, x, k, bits, is_signed); });
      }
    }
  }
}

TEST(TfheRadixCircuit, SelectByAComparison) {
  for (const u32 bits : kCircuitWidths) {
    for (const bool is_signed : {false, true}) {
      const auto smaller = [&](u64 x, u64 y) {
        return holds(Comparison::less, x, y, bits, is_signed) ? x : y;
      };
      expect_forms(
          bits,
          [&](Circuit& c, const Blocks& x, const Blocks& y, Form f) {
            const Sum less = compare(c, Comparison::less, x, y, is_signed, f, kCondition);
            return select(c, less, x, y);
          },
          smaller);
      for (const bool larger : {false, true})
        expect_forms(
            bits,
            [&](Circuit& c, const Blocks& x, const Blocks& y, Form f) {
              const Blocks both = exchange(c, x, y, is_signed, f);
              const auto half = both.begin() + bits / 2;
              return larger ? Blocks(half, both.end()) : Blocks(both.begin(), half);
            },
            [&](u64 x, u64 y) { return larger ? x ^ y ^ smaller(x, y) : smaller(x, y); });
    }
  }
}

// By a bit that is the lowest one of x, of x and y or of one of them and a known number.
TEST(TfheRadixCircuit, ChooseByABit) {
  test::Rng rng = test::test_rng();
  for (const u32 bits : kCircuitWidths) {
    const u64 k = rng() & width_mask(bits);
    for (const double norm2 : {25.0, 66.0}) {
      for (const int known : {0, 1, 2}) {
        expect_binary(
            bits,
            [&](Circuit& c, const Blocks& x, const Blocks& y) {
              const Sum bit = c.look_up(x[0], [](u64 v) { return v & 1; });
              const Blocks constant = constant_blocks(k, bits);
              return choose(c, bit, known == 1 ? constant : x, known == 2 ? constant : y);
            },
            [&](u64 x, u64 y) {
              return (x & 1) != 0 ? (known == 1 ? k : x) : (known == 2 ? k : y);
            },
            norm2);
      }
    }
  }
}

// By the lowest bit of x, and by a comparison that is there no earlier than the carries.
TEST(TfheRadixCircuit, AddAndSubtractWhereABitIs) {
  test::Rng rng = test::test_rng();
  for (const u32 bits : kCircuitWidths) {
    const u64 k = rng() & width_mask(bits);
    const Blocks known = constant_blocks(k, bits);
    const auto low = [](Circuit& c, const Sum& x) {
      return c.look_up(x, [](u64 v) { return v & 1; });
    };
    expect_forms(
        bits,
        [&](Circuit& c, const Blocks& x, const Blocks& y, Form f) {
          return add_where(c, low(c, x[0]), x, y, f);
        },
        [](u64 x, u64 y) { return (x & 1) != 0 ? x + y : x; });
    expect_forms(
        bits,
        [&](Circuit& c, const Blocks& x, const Blocks&, Form f) {
          return add_where(c, 1 - low(c, x[0]), x, known, f);
        },
        [&](u64 x, u64) { return (x & 1) != 0 ? x : x + k; });
    expect_forms(
        bits,
        [](Circuit& c, const Blocks& x, const Blocks& y, Form f) {
          const Sum enough = compare(c, Comparison::greater_equal, x, y, false, f);
          return subtract_where(c, enough, x, y, f);
        },
        [](u64 x, u64 y) { return x >= y ? x - y : x; });
  }
}

// What comes into every column and leaves the last, and states of what follows a span.
TEST(TfheRadixCircuit, SpansOfColumns) {
  test::Rng rng = test::test_rng();
  for (const double norm2 : kNorms) {
    for (const u32 n : {1u, 2u, 3u, 5u, 8u, 9u, 13u, 31u, 33u, 70u}) {
      Circuit circuit(norm2);
      Blocks columns;
      std::vector<std::vector<u64>> inputs;
      const bool carry_in = rng() % 2 != 0;
      for (u32 j = 0; j < n; ++j) {
        const u64 high = j == 0 && !carry_in ? 7 : 6;
        columns.push_back(circuit.input(static_cast<i64>(high)));
        auto& values = inputs.emplace_back();
        for (int i = 0; i < 100; ++i) values.push_back(i % 3 && rng() % 8 ? 3 : rng() % (high + 1));
      }
      Spans spans(circuit, columns, carry_in);
      const u32 from = n > 1 ? spans.widest(n - 1) : 0;
      Blocks carries;
      for (u32 j = 0; j <= n; ++j) carries.push_back(spans.carry(j));
      const Sum state = from < n ? spans.state(from, n) : Sum(0);
      const test::RadixModel model(circuit, inputs);
      for (std::size_t i = 0; i < inputs[0].size(); ++i) {
        u64 carry = carry_in ? 1 : 0;
        i64 expected = 0;
        for (u32 j = 0; j <= n; ++j) {
          ASSERT_EQ(u64(model.sum(carries[j], 100)[i]), carry) << n << " columns, " << j;
          if (j == n) break;
          if (j >= from && inputs[j][i] != 3) expected = inputs[j][i] > 3 ? 1 : -1;
          carry = (inputs[j][i] + carry) >> 2;
        }
        if (from == n) continue;
        ASSERT_EQ(model.sum(state, 100)[i], expected) << n << " columns";
      }
    }
  }
}

TEST(TfheRadixCircuit, Shifts) {
  for (const u32 bits : kCircuitWidths) {
    for (u32 count = 0; count < bits; ++count) {
      SCOPED_TRACE(count);
      expect_binary(
          bits, [&](Circuit& c, const Blocks& x, const Blocks&) { return shift_left(c, x, count); },
          [&](u64 x, u64) { return x << count; });
      for (const bool is_signed : {false, true})
        expect_binary(
            bits,
            [&](Circuit& c, const Blocks& x, const Blocks&) {
              return shift_right(c, x, count, is_signed);
            },
            [&](u64 x, u64) {
              return is_signed ? static_cast<u64>(as_signed(x, bits) >> count) : x >> count;
            });
    }
  }
}

TEST(TfheRadixCircuit, Bitwise) {
  for (const u32 bits : kCircuitWidths) {
    expect_binary(
        bits,
        [](Circuit& c, const Blocks& x, const Blocks& y) {
          return blockwise(c, x, y, [](u64 u, u64 v) { return u ^ v; });
        },
        [](u64 x, u64 y) { return x ^ y; });
    expect_binary(
        bits, [](Circuit&, const Blocks& x, const Blocks&) { return bit_not(x); },
        [](u64 x, u64) { return ~x; });
  }
}

// Columns as full as propagate() allows, which no operation reaches.
TEST(TfheRadixCircuit, PropagateTakesItsWholeRange) {
  test::Rng rng = test::test_rng();
  for (u32 n = 1; n <= 32; ++n) {
    Circuit circuit;
    Blocks columns;
    std::vector<std::vector<u64>> inputs;
    std::vector<u64> expected(300, 0);
    for (u32 j = 0; j < n; ++j) {
      const u64 high = j + 1 == n ? 14 : 6;
      columns.push_back(circuit.input(static_cast<i64>(high)));
      std::vector<u64> values;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        // mostly 3: what comes in goes through
        values.push_back(i == 0 ? high : i % 3 && rng() % 8 ? 3 : rng() % (high + 1));
        expected[i] += values.back() << (2 * j);
      }
      inputs.push_back(std::move(values));
    }
    for (const Form form : kEveryForm) {
      const Blocks out = propagate(circuit, columns, form);
      const auto found = test::RadixModel(circuit, inputs).integers(out, expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i)
        ASSERT_EQ(found[i], expected[i] & width_mask(2 * n)) << n << " columns, " << i;
    }
  }
}

struct Cost {
  u64 look_ups;
  u32 rounds;
};
template <class Build>
void expect_cost(const char* what, u32 bits, Cost cost, Build build, double max_norm2 = kMaxNorm2) {
  Circuit circuit(max_norm2);
  const Blocks x = circuit.inputs(bits / 2), y = circuit.inputs(bits / 2);
  build(circuit, x, y);
  EXPECT_EQ(circuit.look_ups(), cost.look_ups) << what << ", " << bits << " bits, " << max_norm2;
  EXPECT_EQ(circuit.rounds(), cost.rounds) << what << ", " << bits << " bits, " << max_norm2;
}

// The figures of the comments in src/tfhe/integer.
TEST(TfheRadixCircuit, StatedCosts) {
  struct Row {
    double max_norm2;
    Form form;
    Cost costs[6];
  };
  const u32 widths[] = {2, 4, 8, 16, 32, 64};
  const Row additions[] = {
      {25, Form::middle, {{1, 1}, {3, 2}, {9, 4}, {22, 5}, {50, 5}, {107, 6}}},
      {25, Form::fast, {{1, 1}, {3, 2}, {10, 3}, {24, 3}, {56, 4}, {128, 4}}},
      {88, Form::middle, {{1, 1}, {3, 2}, {7, 3}, {18, 4}, {39, 5}, {86, 5}}},
      {88, Form::fast, {{1, 1}, {3, 2}, {8, 2}, {19, 3}, {46, 3}, {98, 4}}},
  };
  for (const Row& row : additions)
    for (std::size_t i = 0; i < std::size(widths); ++i)
      expect_cost(
          "add", widths[i], row.costs[i],
          [&](Circuit& c, const Blocks& x, const Blocks& y) { add(c, x, y, row.form); },
          row.max_norm2);
  const auto product = [](Circuit& c, const Blocks& x, const Blocks& y) {
    multiply(c, x, y, Form::fast);
  };
  expect_cost("mul", 8, {25, 4}, product);
  expect_cost("mul", 16, {108, 6}, product);
  expect_cost("mul", 32, {442, 8}, product);
  expect_cost("mul", 64, {1707, 9}, product);
  const auto comparison = [](Comparison comparison, Form form) {
    return [=](Circuit& c, const Blocks& x, const Blocks& y) {
      compare(c, comparison, x, y, false, form);
    };
  };
  for (const Form form : kEveryForm) {
    const auto less = comparison(Comparison::less, form);
    expect_cost("less", 8, {3, 2}, less, 34);
    expect_cost("less", 64, {21, 3}, less, 34);
    const auto equal = comparison(Comparison::equal, form);
    expect_cost("equal", 8, {3, 2}, equal, 34);
    expect_cost("equal", 64, {23, 3}, equal, 34);
    expect_cost("equal", 8, {5, 2}, equal);
    expect_cost("equal", 64, {36, 3}, equal);
  }
  expect_cost("less", 8, {5, 2}, comparison(Comparison::less, Form::fast));
  expect_cost("less", 64, {43, 4}, comparison(Comparison::less, Form::fast));
  expect_cost("less", 64, {32, 32}, comparison(Comparison::less, Form::lean));
  expect_cost("min", 8, {13, 4}, [](Circuit& c, const Blocks& x, const Blocks& y) {
    select(c, compare(c, Comparison::less, x, y, false, Form::fast, kCondition), x, y);
  });
  const auto chosen = [](Circuit& c, const Blocks& x, const Blocks& y) {
    choose(c, c.input(1), x, y);
  };
  expect_cost("choose", 64, {65, 3}, chosen);
  expect_cost("choose", 64, {64, 2}, chosen, 66);
  expect_cost("or 0", 64, {32, 1}, [](Circuit& c, const Blocks& x, const Blocks&) {
    choose(c, c.input(1), x, constant_blocks(u64(0), 64));
  });
  expect_cost("shift", 64, {0, 0}, [](Circuit& c, const Blocks& x, const Blocks&) {
    shift_right(c, shift_left(c, x, 6), 2, false);
  });
  expect_cost("shift", 64, {32, 1},
              [](Circuit& c, const Blocks& x, const Blocks&) { shift_left(c, x, 1); });
  expect_cost("arithmetic shift", 64, {1, 1},
              [](Circuit& c, const Blocks& x, const Blocks&) { shift_right(c, x, 62, true); });
  expect_cost("not", 64, {0, 0}, [](Circuit&, const Blocks& x, const Blocks&) { bit_not(x); });
  expect_cost("times 16", 8, {0, 0}, [](Circuit& c, const Blocks& x, const Blocks&) {
    multiply(c, x, constant_blocks(u64(16), 8), Form::fast);
  });
}

TEST(TfheRadixCircuit, LookUpsAreFoldedWhereNothingIsToBeDone) {
  Circuit circuit;
  const Sum x = circuit.input(3);
  EXPECT_EQ(circuit.look_up(x, [](u64 v) { return v & 3; }).terms, x.terms);
  const Sum zero = circuit.look_up(x, [](u64 v) { return v >> 2; });
  EXPECT_TRUE(zero.is_constant());
  EXPECT_EQ(zero.constant, 0);
  const Sum five = circuit.look_up(Sum(2), [](u64 v) { return v + 3; });
  EXPECT_EQ(five.constant, 5);
  EXPECT_EQ(circuit.look_ups(), 0u);
  const Sum y = circuit.look_up(x + x, [](u64 v) { return v / 2; });
  EXPECT_EQ(y.terms, circuit.look_up(2 * x, [](u64 v) { return v >> 1; }).terms);
  EXPECT_EQ(circuit.look_ups(), 1u);
  EXPECT_TRUE((y - y).is_constant());
}

// What a call is refused with, and that it left the circuit as it was.
template <class Call>
void expect_refused(Circuit& circuit, const std::string& message, Call call) {
  const u64 before = circuit.look_ups();
  try {
    call();
    ADD_FAILURE() << message;
  } catch (const ParameterError& error) {
    EXPECT_EQ(error.what(), message);
    EXPECT_FALSE(error.field("found").empty() || error.field("expected").empty());
  }
  EXPECT_EQ(circuit.look_ups(), before);
}

TEST(TfheRadixCircuit, LookUpsOutOfRangeAreRefused) {
  Circuit circuit;
  const Sum x = circuit.input(3);
  const auto same = [](u64 v) { return v; };
  expect_refused(circuit, "the argument of a look-up is in 0..18, expected 0..15",
                 [&] { circuit.look_up(6 * x, same); });
  expect_refused(circuit, "the argument of a look-up is in 0..3000, expected 0..15",
                 [&] { circuit.look_up(1000 * x, same); });
  expect_refused(circuit, "the argument of a look-up is in -1..2, expected 0..15",
                 [&] { circuit.look_up(x - 1, same); });
  expect_refused(circuit, "the argument of a look-up is in 5..3, expected 0..15",
                 [&] { circuit.look_up(x.within(5, 3), same); });
  expect_refused(circuit, "the values of a look-up are in 13..16, expected 0..15",
                 [&] { circuit.look_up(x, [](u64 v) { return v + 13; }); });
  expect_refused(circuit, "the values of a look-up are in -1..2, expected 0..15",
                 [&] { circuit.look_up(x, [](u64 v) { return v - 1; }); });
  EXPECT_EQ(circuit.look_up(5 * x, same).high, 15);

  const auto negated = [](i64 v) { return -v; };
  expect_refused(circuit, "the argument of a look-up is in 0..18, expected -15..15",
                 [&] { circuit.look_up_signed(6 * x, negated); });
  expect_refused(circuit, "the argument of a look-up is in 5..3, expected -15..15",
                 [&] { circuit.look_up_signed(x.within(5, 3), negated); });
  expect_refused(circuit, "the values of a look-up are in -15..15, expected -15..0",
                 [&] { circuit.look_up_signed(5 * x - 5 * circuit.input(3), negated); });
  expect_refused(circuit, "a look-up of -15..15 has f(1) + f(-15) = 1, expected 0", [&] {
    circuit.look_up_signed(5 * x - 5 * circuit.input(3), [](i64 v) { return i64(v == 1); });
  });
  EXPECT_EQ(circuit.look_up_signed(100 + x, negated).low, -103);  // few values, wherever they lie
}

}  // namespace
}  // namespace crenel::tfhe::radix
