// Shifts by encrypted counts, rotations, counts of bits, signs and types, on plain integers.
#include "tfhe/integer/bits.h"

#include <gtest/gtest.h>

#include <bit>

#include "crenel/core/error.h"
#include "support/integer_values.h"
#include "support/radix_model.h"

namespace crenel::tfhe::radix {
namespace {

using test::as_signed;
using test::width_mask;

constexpr u32 kBitWidths[] = {2, 4, 6, 8, 10, 14, 16, 24, 26, 32, 48, 62, 64};

std::vector<u64> values(u32 bits, test::Rng& rng) {
  const u64 mask = width_mask(bits), top = u64(1) << (bits - 1);
  std::vector<u64> out{0, 1, 2, mask, mask - 1, top, top - 1, top + 1};
  for (u32 i = 0; i < bits; ++i) out.push_back((rng() & mask) >> i);
  for (u32 i = 0; i < bits; ++i) out.push_back(rng() << i & mask);
  return out;
}

// build(circuit, x) of `from` bits against expected(x) modulo the width of what it gives.
template <class Build, class Expected>
void expect_unary(u32 bits, Build build, Expected expected) {
  SCOPED_TRACE(bits);
  test::Rng rng = test::test_rng();
  const std::vector<u64> x = values(bits, rng);
  for (const Form form : {Form::lean, Form::fast}) {
    Circuit circuit;
    const Blocks out = build(circuit, circuit.inputs(bits / 2), form);
    test::expect_runnable(circuit, out);
    const auto found =
        test::RadixModel(circuit, test::radix_blocks(x, bits)).integers(out, x.size());
    const u64 mask = width_mask(2 * static_cast<u32>(out.size()));
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(found[i], u64(expected(x[i])) & mask) << x[i];
  }
}

u64 rotated(u64 x, u64 count, u32 bits) {
  count %= bits;
  return count == 0 ? x : (x << count | x >> (bits - count)) & width_mask(bits);
}

TEST(TfheRadixBits, RotationsByPublicCounts) {
  for (const u32 bits : kBitWidths) {
    for (u32 count = 0; count < bits; ++count) {
      SCOPED_TRACE(count);
      expect_unary(
          bits,
          [&](Circuit& c, const Blocks& x, Form) { return rotate(x, count, Direction::left, c); },
          [&](u64 x) { return rotated(x, count, bits); });
      expect_unary(
          bits,
          [&](Circuit& c, const Blocks& x, Form) { return rotate(x, count, Direction::right, c); },
          [&](u64 x) { return rotated(x, bits - count, bits); });
    }
  }
}

// By counts of `width` bits, every one that a count of up to 8 bits can be.
template <class Expected>
void expect_shift(u32 bits, u32 width, Direction direction, Fill fill, Expected expected) {
  SCOPED_TRACE(cat(bits, " bits by ", width));
  test::Rng rng = test::test_rng();
  std::vector<u64> x, counts;
  for (u64 i = 0; i < 300; ++i) {
    x.push_back(rng() & width_mask(bits));
    counts.push_back((width <= 8 || i % 2 == 0 ? i : rng()) & width_mask(width));
  }
  Circuit circuit;
  const Blocks a = circuit.inputs(bits / 2), count = circuit.inputs(width / 2);
  const Blocks out = shift(circuit, a, count, direction, fill);
  test::expect_runnable(circuit, out);
  auto inputs = test::radix_blocks(x, bits);
  for (auto& block : test::radix_blocks(counts, width)) inputs.push_back(std::move(block));
  const auto found = test::RadixModel(circuit, inputs).integers(out, x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(found[i], expected(x[i], counts[i]) & width_mask(bits))
        << x[i] << " by " << counts[i];
}

TEST(TfheRadixBits, ShiftsByEncryptedCounts) {
  for (const u32 bits : kBitWidths) {
    for (const u32 width : {2u, 4u, 6u, 8u, 16u, 64u}) {
      expect_shift(bits, width, Direction::left, Fill::zero,
                   [&](u64 x, u64 count) { return count < bits ? x << count : 0; });
      expect_shift(bits, width, Direction::right, Fill::zero,
                   [&](u64 x, u64 count) { return count < bits ? x >> count : 0; });
      expect_shift(bits, width, Direction::right, Fill::sign, [&](u64 x, u64 count) {
        return static_cast<u64>(as_signed(x, bits) >> std::min<u64>(count, bits - 1));
      });
      expect_shift(bits, width, Direction::left, Fill::around,
                   [&](u64 x, u64 count) { return rotated(x, count, bits); });
      expect_shift(bits, width, Direction::right, Fill::around,
                   [&](u64 x, u64 count) { return rotated(x, bits - count % bits, bits); });
    }
  }
}

TEST(TfheRadixBits, CountsOfBits) {
  for (const u32 bits : kBitWidths) {
    expect_unary(bits, leading_zeros,
                 [&](u64 x) { return static_cast<u64>(std::countl_zero(x)) - (64 - bits); });
    expect_unary(bits, trailing_zeros,
                 [&](u64 x) { return std::min<u64>(bits, std::countr_zero(x)); });
    expect_unary(bits, count_ones, [](u64 x) { return static_cast<u64>(std::popcount(x)); });
  }
}

// All bits of 256 are more than 8 bits hold.
TEST(TfheRadixBits, CountsOfWideIntegers) {
  for (const u32 bits : {128u, 254u, 256u}) {
    const u32 n = bits / 2;
    for (const auto& count : {leading_zeros, trailing_zeros, count_ones}) {
      Circuit circuit;
      const Blocks out = count(circuit, circuit.inputs(n), Form::lean);
      EXPECT_EQ(2 * out.size(), bits == 256 ? 16u : 8u);
      const bool ones = count == count_ones;
      // integers 0, all bits, and one with the lowest and the highest bit alone
      std::vector<std::vector<u64>> inputs(n, {0, 3, 0});
      inputs[0][2] = 1, inputs[n - 1][2] = 2;
      const auto found = test::RadixModel(circuit, inputs).integers(out, 3);
      EXPECT_EQ(found, (ones ? std::vector<u64>{0, bits, 2} : std::vector<u64>{bits, 0, 0}));
    }
  }
}

TEST(TfheRadixBits, SignsAndTypes) {
  for (const u32 bits : kBitWidths) {
    expect_unary(bits, absolute, [&](u64 x) {
      const i64 v = as_signed(x, bits);
      return v < 0 ? 0 - static_cast<u64>(v) : static_cast<u64>(v);
    });
    for (const u32 to : {2u, 8u, 20u, 64u})
      for (const bool is_signed : {false, true})
        expect_unary(
            bits,
            [&](Circuit& c, const Blocks& x, Form) { return resized(c, x, to / 2, is_signed); },
            [&](u64 x) { return is_signed ? static_cast<u64>(as_signed(x, bits)) : x; });
  }
}

TEST(TfheRadixBits, PrefixesOfFlags) {
  test::Rng rng = test::test_rng();
  for (u32 n = 1; n <= 130; n += n < 20 ? 1 : 11) {
    Circuit circuit;
    Blocks flags;
    std::vector<std::vector<u64>> inputs(n);
    for (u32 i = 0; i < n; ++i) {
      flags.push_back(circuit.input(1));
      for (u32 k = 0; k < 100; ++k) inputs[i].push_back(rng() % (n + 1) == 0);
    }
    const Blocks out = prefix_or(circuit, flags);
    const Blocks any{any_of(circuit, flags), none_of(circuit, flags)};
    const test::RadixModel model(circuit, inputs);
    for (u32 k = 0; k < 100; ++k) {
      u64 seen = 0;
      for (u32 i = 0; i < n; ++i) {
        seen |= inputs[i][k];
        ASSERT_EQ(u64(model.sum(out[i], 100)[k]), seen) << n << ", " << i;
      }
      ASSERT_EQ(u64(model.sum(any[0], 100)[k]), seen);
      ASSERT_EQ(u64(model.sum(any[1], 100)[k]), 1 - seen);
    }
  }
}

}  // namespace
}  // namespace crenel::tfhe::radix
