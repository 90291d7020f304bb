// Radix integers, encrypted: division, encrypted counts, wide words, tables, random numbers, forms.
#include <bit>

#include "crenel/core/error.h"
#include "support/integer_world.h"

namespace crenel::tfhe {
namespace {

using test::as_signed;
using test::width_mask;

class TfheIntegerMore : public test::IntegerTest {
 protected:
  IntegerEvaluator integers(CircuitForm form = CircuitForm::automatic) {
    return IntegerEvaluator(toy().ev, form);
  }
};

TEST_P(TfheIntegerMore, WideWords) {
  auto rng = test::test_rng();
  for (const u32 bits : {66u, 256u}) {
    const bool is_signed = bits == 66;
    std::vector<u64> words;
    const u32 each = words_of(bits), top = (bits - 1) % 64;
    for (u32 i = 0; i < 3 * each; ++i) words.push_back(i < each ? ~u64(0) : rng());
    for (u32 i = each - 1; i < words.size(); i += each) {
      const u64 low = words[i] & width_mask(top + 1);
      words[i] = is_signed ? static_cast<u64>(as_signed(low, top + 1)) : low;
    }
    const Integers a = encrypt_words(toy().client, words, bits, is_signed);
    EXPECT_EQ(decrypt_words(toy().client, a), words);
    const IntegerEvaluator ev = integers(CircuitForm::lean);
    EXPECT_EQ(decrypt_words(toy().client, ev.trivial_words(words, bits, is_signed)), words);
    EXPECT_EQ(decrypt_words(toy().client, ev.sub(ev.add(a, 1), 1)), words);
    EXPECT_THROW(decrypt_unsigned(toy().client, a), StateError);
    EXPECT_THROW(decrypt_signed(toy().client, a), StateError);
    if (is_signed) {
      words.back() = u64(1) << 63;
      EXPECT_THROW(encrypt_words(toy().client, words, bits, is_signed), ParameterError);
    }
    words.pop_back();
    EXPECT_THROW(encrypt_words(toy().client, words, bits, is_signed), ParameterError);
  }
}

TEST(TfheWideValue, ArithmeticAndRanges) {
  EXPECT_EQ(-WideValue::of_signed(-5), WideValue(5));
  EXPECT_EQ(-WideValue(), WideValue());
  EXPECT_EQ((-WideValue(1)).word(3), ~u64(0));
  for (const u32 bits : {2u, 8u, 62u, 64u, 66u, 254u}) {
    const WideValue low = WideValue::of_signed(-1);
    EXPECT_TRUE(low.fits(bits, true)) << bits;
    EXPECT_FALSE(low.fits(bits, false)) << bits;
    std::vector<u64> words(4, 0);
    words[bits / 64] = u64(1) << (bits % 64);
    EXPECT_FALSE(WideValue::of_words(words, false).fits(bits, false)) << bits;
    EXPECT_TRUE(WideValue::of_words(words, false).fits(bits + 2, true)) << bits;
    words.assign(4, 0);
    words[(bits - 1) / 64] = u64(1) << ((bits - 1) % 64);
    EXPECT_TRUE(WideValue::of_words(words, false).fits(bits, false)) << bits;
    EXPECT_FALSE(WideValue::of_words(words, false).fits(bits, true)) << bits;
    EXPECT_TRUE((-WideValue::of_words(words, false)).fits(bits, true)) << bits;
  }
}

TEST_P(TfheIntegerMore, DivisionAndOverflow) {
  auto rng = test::test_rng();
  const u32 bits = 6;
  const u64 mask = width_mask(bits);
  for (const CircuitForm form : {CircuitForm::lean, CircuitForm::fast}) {
    const IntegerEvaluator ev = integers(form);
    const Pair in = few(bits, rng, 2);
    const Integers a = encrypt(in.a, bits, false), b = encrypt(in.b, bits, false);
    const auto [q, r] = ev.divmod(a, b);
    expect(q, in, [&](u64 x, u64 y) { return y == 0 ? mask : x / y; });
    expect(r, in, [&](u64 x, u64 y) { return y == 0 ? x : x % y; });
    expect(ev.div(a, 7), in, [](u64 x, u64) { return x / 7; });
    expect(ev.rem(50, b), in, [](u64, u64 y) { return y == 0 ? 50 : 50 % y; });
    const auto [sum, carried] = ev.add_overflow(a, b);
    expect(sum, in, [](u64 x, u64 y) { return x + y; });
    expect_flags(carried, in, [&](u64 x, u64 y) { return x + y > mask; });
    const auto [product, lost] = ev.mul_overflow(a, b);
    expect(product, in, [](u64 x, u64 y) { return x * y; });
    expect_flags(lost, in, [&](u64 x, u64 y) { return x * y > mask; });
    const auto [low, high] = ev.min_max(a, b);
    expect(low, in, [](u64 x, u64 y) { return std::min(x, y); });
    expect(high, in, [](u64 x, u64 y) { return std::max(x, y); });
  }
  const IntegerEvaluator ev = integers();
  const Pair in = few(bits, rng, 4);
  const Integers a = encrypt(in.a, bits, true), b = encrypt(in.b, bits, true);
  expect(ev.div(a, b, false), in, [&](u64 x, u64 y) {
    return y == 0 ? ~u64(0) : static_cast<u64>(as_signed(x, bits) / as_signed(y, bits));
  });
  EXPECT_THROW(ev.div(a, u64(0)), ParameterError);
  EXPECT_THROW(ev.divmod(a, u64(300)), ParameterError);
  EXPECT_THROW(ev.rem(a, encrypt(in.b, bits, false)), StateError);
}

TEST_P(TfheIntegerMore, ShiftsCountsAndTypes) {
  auto rng = test::test_rng();
  const IntegerEvaluator ev = integers();
  const u32 bits = 8;
  Pair in = few(bits, rng, 6);
  for (u64& count : in.b) count &= 15;
  const Integers a = encrypt(in.a, bits, false), s = encrypt(in.a, bits, true),
                 count = encrypt(in.b, 4, false);
  expect(ev.shift_left(a, count), in, [](u64 x, u64 c) { return x << c; });
  expect(ev.shift_right(a, count), in, [](u64 x, u64 c) { return x >> c; });
  expect(ev.shift_right(s, count), in,
         [&](u64 x, u64 c) { return static_cast<u64>(as_signed(x, bits) >> std::min<u64>(c, 7)); });
  expect(ev.rotate_left(a, count), in, [](u64 x, u64 c) { return x << c % 8 | x >> (8 - c % 8); });
  expect(ev.rotate_right(a, 3), in, [](u64 x, u64) { return x >> 3 | x << 5; });
  expect(ev.count_ones(a), in, [](u64 x, u64) { return std::popcount(x); });
  expect(ev.leading_zeros(a), in, [](u64 x, u64) { return std::countl_zero(x) - 56; });
  expect(ev.convert(s, 12, true), in, [&](u64 x, u64) { return as_signed(x, bits); });
  expect(ev.convert(s, 4, false), in, [](u64 x, u64) { return x; });
  expect(ev.abs(s), in, [&](u64 x, u64) { return std::abs(as_signed(x, bits)); });
  EXPECT_THROW(ev.shift_left(a, s), StateError);
  EXPECT_THROW(ev.rotate_left(a, 8), ParameterError);
  EXPECT_THROW(ev.convert(a, 7, false), ParameterError);
  EXPECT_THROW(ev.convert(a, 258, false), ParameterError);
}

TEST_P(TfheIntegerMore, TablesAndDotProducts) {
  auto rng = test::test_rng();
  const IntegerEvaluator ev = integers();
  const Pair in = few(8, rng, 5);
  const Integers a = encrypt(in.a, 8, false), b = encrypt(in.b, 8, false);
  std::vector<u64> entries;
  for (int i = 0; i < 100; ++i) entries.push_back(rng() & 0xf);
  const Integers found = ev.look_up(a, entries, 4, false);
  expect(found, in, [&](u64 x, u64) { return x < 100 ? entries[x] : 0; });
  const Integers* first[] = {&a, &b, &a};
  const Integers* second[] = {&b, &b, &a};
  expect(ev.dot(first, second), in, [](u64 x, u64 y) { return x * y + y * y + x * x; });
  EXPECT_THROW(ev.look_up(a, std::vector<u64>(257, 0), 4, false), ParameterError);
  EXPECT_THROW(ev.look_up(a, std::vector<u64>(), 4, false), ParameterError);
  EXPECT_THROW(ev.look_up(a, std::vector<u64>{16}, 4, false), ParameterError);
  EXPECT_THROW(ev.look_up(encrypt(in.a, 8, true), entries, 4, false), StateError);
  EXPECT_THROW(ev.dot(first, std::span(second).first(2)), ParameterError);
}

TEST_P(TfheIntegerMore, RandomIntegersDependOnSeedAndKey) {
  const IntegerEvaluator ev = integers();
  const auto seed = random_seed();
  EXPECT_NE(seed, random_seed());
  const u64 count = exhaustive() ? 400 : 40;
  const auto values = open(ev.random(count, 8, false, seed));
  EXPECT_EQ(values, open(ev.random(count, 8, false, seed)));
  EXPECT_NE(values, open(ev.random(count, 8, false, random_seed())));
  EXPECT_THROW(ev.random(0, 8, false, seed), ParameterError);
  EXPECT_THROW(ev.random(1, 9, false, seed), ParameterError);
}

TEST_P(TfheIntegerMore, SeveralFunctionsOfOneRotation) {
  auto rng = test::test_rng();
  const auto& ev = toy().ev;
  std::vector<u64> messages;
  for (int i = 0; i < 10; ++i) messages.push_back(rng() & 3);
  const Ciphertext a = toy().client.encrypt(messages);
  Lut table;
  for (int i = 0; i < 16; ++i) table.table.push_back(rng() & 15);
  for (const u32 outputs : {1u, 2u, 4u}) {
    const auto found = toy().client.decrypt(ev.lut(a, {&table, 1}, {}, outputs));
    ASSERT_EQ(found.size(), messages.size() * outputs);
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_EQ(found[i], table.table[messages[i / outputs] + i % outputs * (16 / outputs)]);
  }
  EXPECT_THROW(ev.lut(a, {&table, 1}, {}, 3), ParameterError);
  EXPECT_THROW(ev.lut(a, {&table, 1}, {}, 32), ParameterError);
}

TEST(TfheIntegerCost, KnowsEveryOperation) {
  for (const std::string& name : integer_operations()) {
    for (const bool is_signed : {false, true}) {
      const auto lean = integer_cost(name, 16, is_signed, CircuitForm::lean),
                 fast = integer_cost(name, 16, is_signed, CircuitForm::fast);
      EXPECT_LE(lean.bootstraps, fast.bootstraps) << name;
      EXPECT_LE(fast.depth, lean.depth) << name;
      EXPECT_GE(lean.key_switches, lean.bootstraps) << name;
      for (const u32 processors : {1u, 132u}) {
        const auto chosen =
            integer_cost(name, 16, is_signed, CircuitForm::automatic, 5, processors);
        EXPECT_GE(chosen.bootstraps, lean.bootstraps) << name;  // forms between the two, too
        EXPECT_LE(chosen.depth, lean.depth) << name;
        EXPECT_GE(chosen.depth, fast.depth) << name;
      }
    }
  }
  EXPECT_THROW(integer_cost("root", 8, false, CircuitForm::lean), ParameterError);
  EXPECT_THROW(integer_cost("add", 9, false, CircuitForm::lean), ParameterError);
  EXPECT_THROW(circuit_form_from_string("wide"), ParameterError);
}

// Sets whose sums may be large: signed look-ups of pairs of blocks, spans of columns.
class TfheIntegerRoom : public TfheIntegerMore {
 protected:
  test::TfheWorld& toy() override { return world(name_); }
  const char* name_ = nullptr;
};

TEST_P(TfheIntegerRoom, FormsOfSetsWithMoreRoom) {
  auto rng = test::test_rng();
  for (const char* name : {"toy-lut4:norm34", "toy-lut4:norm88", "toy-lut4g4:norm88"}) {
    name_ = name;
    ASSERT_LT(toy().params().p_fail_log2(), -40) << name;
    for (const CircuitForm form : {CircuitForm::lean, CircuitForm::fast, CircuitForm::automatic}) {
      const IntegerEvaluator ev = integers(form);
      for (const u32 bits : exhaustive() ? std::vector<u32>{2, 6, 16, 40} : std::vector<u32>{6}) {
        for (const bool is_signed : {false, true}) {
          const Pair in = few(bits, rng, 6);
          const Integers a = encrypt(in.a, bits, is_signed), b = encrypt(in.b, bits, is_signed);
          expect(ev.add(a, b), in, [](u64 x, u64 y) { return x + y; });
          expect(ev.sub(a, b), in, [](u64 x, u64 y) { return x - y; });
          for (const Comparison comparison : test::kComparisons)
            expect_flags(ev.compare(comparison, a, b), in, [&](u64 x, u64 y) {
              return test::holds(comparison, x, y, bits, is_signed);
            });
          const auto larger = [&](u64 x, u64 y) {
            return test::holds(Comparison::less, x, y, bits, is_signed) ? y : x;
          };
          expect(ev.max(a, b), in, larger);
          expect(ev.select(ev.compare(Comparison::less, a, b), b, u64(0)), in,
                 [&](u64 x, u64 y) { return larger(x, y) == y && x != y ? y : 0; });
        }
      }
    }
  }
}

CRENEL_DEVICE_SUITE(TfheIntegerMore);
CRENEL_DEVICE_SUITE(TfheIntegerRoom);

}  // namespace
}  // namespace crenel::tfhe
