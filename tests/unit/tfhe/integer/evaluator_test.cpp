// Radix integers, encrypted: every operation against plain arithmetic.
#include "support/integer_world.h"

namespace crenel::tfhe {
namespace {

using test::as_signed;
using test::width_mask;

class TfheInteger : public test::IntegerTest {};

TEST_P(TfheInteger, RoundTrip) {
  auto rng = test::test_rng();
  for (u32 bits = 2; bits <= 64; bits += 2) {
    for (const bool is_signed : {false, true}) {
      const Pair in = values(bits, rng, 4);
      const Integers x = encrypt(in.a, bits, is_signed);
      EXPECT_EQ(x.bits(), bits);
      EXPECT_EQ(x.size(), in.a.size());
      EXPECT_EQ(x.is_signed(), is_signed);
      EXPECT_EQ(x.blocks().size(), bits / 2);
      expect(x, in, [](u64 a, u64) { return a; });
      expect(x.clone(), in, [](u64 a, u64) { return a; });
    }
  }
}

TEST_P(TfheInteger, AddSubtractNegate) {
  auto rng = test::test_rng();
  const IntegerEvaluator ev = integers();
  for (const u32 bits : widths()) {
    for (const bool is_signed : {false, true}) {
      const Pair in = values(bits, rng);
      const Integers a = encrypt(in.a, bits, is_signed), b = encrypt(in.b, bits, is_signed);
      expect(ev.add(a, b), in, [](u64 x, u64 y) { return x + y; });
      expect(ev.sub(a, b), in, [](u64 x, u64 y) { return x - y; });
      expect(ev.neg(a), in, [](u64 x, u64) { return 0 - x; });
      EXPECT_EQ(ev.add(a, b).is_signed(), is_signed);
    }
  }
}

TEST_P(TfheInteger, Multiply) {
  auto rng = test::test_rng();
  const IntegerEvaluator ev = integers();
  for (const u32 bits : widths()) {
    const Pair in = few(bits, rng, bits <= 16 ? 20 : 4);
    const Integers a = encrypt(in.a, bits, bits % 4 == 0), b = encrypt(in.b, bits, bits % 4 == 0);
    expect(ev.mul(a, b), in, [](u64 x, u64 y) { return x * y; });
  }
}

TEST_P(TfheInteger, OperandsMayBeOneObject) {
  auto rng = test::test_rng();
  const IntegerEvaluator ev = integers();
  const u32 bits = 8;
  const Pair in = few(bits, rng, 12);
  const Integers a = encrypt(in.a, bits, false);
  // bootstrapped: the noise of both operands is the same, not independent
  const Integers x = ev.add(a, u64(0));
  const Integers y = ev.bit_and(x, x);
  expect(ev.mul(y, y), in, [](u64 v, u64) { return v * v; });
  expect(ev.add(y, y), in, [](u64 v, u64) { return 2 * v; });
  expect(ev.sub(y, y), in, [](u64, u64) { return u64(0); });
  expect(ev.min(y, y), in, [](u64 v, u64) { return v; });
}

TEST_P(TfheInteger, ResultsAreCleanEnoughForFurtherWork) {
  auto rng = test::test_rng();
  const IntegerEvaluator ev = integers();
  const u32 bits = 10;
  const Pair in = few(bits, rng, 16);
  const Integers a = encrypt(in.a, bits, false), b = encrypt(in.b, bits, false);
  Integers x = a.clone();
  for (int i = 0; i < 6; ++i)
    x = ev.bit_xor(ev.max(ev.shift_left(ev.bit_not(x), 1), b), ev.mul(ev.sub(b, x), u64(3)));
  const u64 mask = width_mask(bits);
  expect(x, in, [&](u64 v, u64 y) {
    for (int i = 0; i < 6; ++i) v = std::max((~v & mask) << 1 & mask, y) ^ ((y - v) * 3 & mask);
    return v;
  });
}

TEST_P(TfheInteger, Scalars) {
  auto rng = test::test_rng();
  const IntegerEvaluator ev = integers();
  for (const u32 bits : widths()) {
    const Pair in = few(bits, rng, bits <= 16 ? 12 : 4);
    const Integers a = encrypt(in.a, bits, false);
    const u64 random = rng();
    for (const u64 k : {u64(0), u64(1), u64(7), ~u64(0), u64(1) << (bits - 1), random}) {
      expect(ev.add(a, k), in, [&](u64 x, u64) { return x + k; });
      expect(ev.sub(a, k), in, [&](u64 x, u64) { return x - k; });
      expect(ev.mul(a, k), in, [&](u64 x, u64) { return x * k; });
    }
  }
}

TEST_P(TfheInteger, SlicesAndConcatenation) {
  auto rng = test::test_rng();
  const Pair in = values(8, rng);
  const u64 n = in.a.size();
  const Integers whole = encrypt(in.a, 8, true), head = whole.slice(0, 2),
                 tail = whole.slice(2, n - 2);
  EXPECT_EQ(whole.bytes(), 4 * whole.blocks()[0].bytes());
  EXPECT_TRUE(head.is_signed());
  const Integers* parts[] = {&head, &tail};
  EXPECT_EQ(open(concatenate(parts)), open(whole));
  EXPECT_EQ(open(tail), std::vector<u64>(in.a.begin() + 2, in.a.end()));
  EXPECT_THROW(whole.slice(n, 1), ParameterError);
  EXPECT_THROW(concatenate(std::span<const Integers* const>()), ParameterError);
  const Integers wide = encrypt(in.a, 10, true), other = encrypt(in.a, 8, false);
  for (const Integers* second : {&wide, &other}) {
    const Integers* mixed[] = {&whole, second};
    EXPECT_THROW(concatenate(mixed), StateError);
  }
}

TEST_P(TfheInteger, PublicOperandsAnywhere) {
  auto rng = test::test_rng();
  const IntegerEvaluator ev = integers();
  for (const u32 bits : widths()) {
    const Pair in = few(bits, rng, bits <= 16 ? 8 : 3);
    const u64 low = bits == 64 ? ~u64(0) : (u64(1) << bits) - 1;
    for (const bool is_signed : {false, true}) {
      const Integers a = encrypt(in.a, bits, is_signed);
      const Ciphertext flag = ev.compare(Comparison::not_equal, a, 0);
      for (const u64 k : {u64(0), low, u64(1) << (bits - 1), rng() & low}) {
        const u64 word = is_signed ? static_cast<u64>(as_signed(k, bits)) : k;
        const auto less = [&](u64 x, u64 y) {
          return is_signed ? as_signed(x, bits) < as_signed(y, bits) : x < y;
        };
        expect(ev.sub(word, a), in, [&](u64 x, u64) { return k - x; });
        expect(ev.mul(word, a), in, [&](u64 x, u64) { return k * x; });
        expect(ev.min(a, word), in, [&](u64 x, u64) { return less(x, k) ? x : k; });
        expect(ev.max(word, a), in, [&](u64 x, u64) { return less(x, k) ? k : x; });
        expect(ev.bit_and(a, word), in, [&](u64 x, u64) { return x & k; });
        expect(ev.bit_or(word, a), in, [&](u64 x, u64) { return x | k; });
        expect(ev.bit_xor(a, word), in, [&](u64 x, u64) { return x ^ k; });
        expect(ev.select(flag, word, a), in, [&](u64 x, u64) { return x != 0 ? k : x; });
        expect(ev.select(flag, a, word), in, [&](u64 x, u64) { return x != 0 ? x : k; });
        expect_flags(ev.compare(Comparison::less, word, a), in,
                     [&](u64 x, u64) { return less(k, x); });
        expect_flags(ev.compare(Comparison::greater_equal, word, a), in,
                     [&](u64 x, u64) { return !less(k, x); });
      }
    }
  }
}

TEST_P(TfheInteger, Compare) {
  auto rng = test::test_rng();
  const IntegerEvaluator ev = integers();
  for (const u32 bits : widths()) {
    for (const bool is_signed : {false, true}) {
      const Pair in = values(bits, rng);
      const Integers a = encrypt(in.a, bits, is_signed), b = encrypt(in.b, bits, is_signed);
      const auto less = [&](u64 x, u64 y) {
        return is_signed ? as_signed(x, bits) < as_signed(y, bits) : x < y;
      };
      expect_flags(ev.compare(Comparison::less, a, b), in, less);
      expect_flags(ev.compare(Comparison::less_equal, a, b), in,
                   [&](u64 x, u64 y) { return !less(y, x); });
      expect_flags(ev.compare(Comparison::greater, a, b), in,
                   [&](u64 x, u64 y) { return less(y, x); });
      expect_flags(ev.compare(Comparison::greater_equal, a, b), in,
                   [&](u64 x, u64 y) { return !less(x, y); });
      expect_flags(ev.compare(Comparison::equal, a, b), in, [](u64 x, u64 y) { return x == y; });
      expect_flags(ev.compare(Comparison::not_equal, a, b), in,
                   [](u64 x, u64 y) { return x != y; });
      const u64 k = in.b.back();
      const u64 scalar = is_signed ? static_cast<u64>(as_signed(k, bits)) : k;
      expect_flags(ev.compare(Comparison::less, a, scalar), in,
                   [&](u64 x, u64) { return less(x, k); });
      expect_flags(ev.compare(Comparison::equal, a, scalar), in,
                   [&](u64 x, u64) { return x == k; });
    }
  }
}

TEST_P(TfheInteger, MinMaxSelect) {
  auto rng = test::test_rng();
  const IntegerEvaluator ev = integers();
  for (const u32 bits : widths()) {
    for (const bool is_signed : {false, true}) {
      const Pair in = values(bits, rng);
      const Integers a = encrypt(in.a, bits, is_signed), b = encrypt(in.b, bits, is_signed);
      const auto less = [&](u64 x, u64 y) {
        return is_signed ? as_signed(x, bits) < as_signed(y, bits) : x < y;
      };
      expect(ev.min(a, b), in, [&](u64 x, u64 y) { return less(x, y) ? x : y; });
      expect(ev.max(a, b), in, [&](u64 x, u64 y) { return less(x, y) ? y : x; });
      const Ciphertext differ = ev.compare(Comparison::not_equal, a, b);
      expect(ev.select(differ, b, a), in, [](u64, u64 y) { return y; });
      std::vector<u64> flags(in.a.size());
      for (u64& flag : flags) flag = rng() & 1;
      const Integers chosen = ev.select(toy().client.encrypt(flags), a, b);
      const std::vector<u64> found = open(chosen);
      for (std::size_t i = 0; i < flags.size(); ++i)
        EXPECT_EQ(found[i], flags[i] ? in.a[i] : in.b[i]);
    }
  }
}

TEST_P(TfheInteger, Shifts) {
  auto rng = test::test_rng();
  const IntegerEvaluator ev = integers();
  for (const u32 bits : widths()) {
    for (const bool is_signed : {false, true}) {
      const Pair in = few(bits, rng, 10);
      const Integers a = encrypt(in.a, bits, is_signed);
      for (const u32 count : {0u, 1u, bits / 2, bits - 2, bits - 1}) {
        expect(ev.shift_left(a, count), in, [&](u64 x, u64) { return x << count; });
        expect(ev.shift_right(a, count), in, [&](u64 x, u64) {
          return is_signed ? static_cast<u64>(as_signed(x, bits) >> count) : x >> count;
        });
      }
    }
  }
}

TEST_P(TfheInteger, Bitwise) {
  auto rng = test::test_rng();
  const IntegerEvaluator ev = integers();
  for (const u32 bits : widths()) {
    const Pair in = values(bits, rng);
    const Integers a = encrypt(in.a, bits, true), b = encrypt(in.b, bits, true);
    expect(ev.bit_and(a, b), in, [](u64 x, u64 y) { return x & y; });
    expect(ev.bit_or(a, b), in, [](u64 x, u64 y) { return x | y; });
    expect(ev.bit_xor(a, b), in, [](u64 x, u64 y) { return x ^ y; });
    expect(ev.bit_not(a), in, [](u64 x, u64) { return ~x; });
  }
}

TEST_P(TfheInteger, TrivialOperands) {
  auto rng = test::test_rng();
  const IntegerEvaluator ev = integers();
  const Pair in = few(16, rng, 8);
  const Integers a = encrypt(in.a, 16, false), b = ev.trivial(in.b, 16, false);
  expect(b, in, [](u64, u64 y) { return y; });
  expect(ev.add(a, b), in, [](u64 x, u64 y) { return x + y; });
  expect(ev.mul(b, b), in, [](u64, u64 y) { return y * y; });
}

// More integers times blocks than one batched look-up takes (not on ref).
TEST_P(TfheInteger, LargeArrays) {
  auto rng = test::test_rng();
  const IntegerEvaluator ev = integers();
  Pair in;
  for (int i = 0; i < (exhaustive() ? 22000 : 100); ++i)
    in.a.push_back(rng() & 0xff), in.b.push_back(rng() & 0xff);
  const Integers a = encrypt(in.a, 8, false), b = encrypt(in.b, 8, false);
  expect(ev.bit_or(a, b), in, [](u64 x, u64 y) { return x | y; });
}

CRENEL_DEVICE_SUITE(TfheInteger);

}  // namespace
}  // namespace crenel::tfhe
