// Divisions, overflow and tables on plain integers.
#include "tfhe/integer/division.h"

#include <gtest/gtest.h>

#include "crenel/core/error.h"
#include "support/integer_values.h"
#include "support/radix_model.h"

namespace crenel::tfhe::radix {
namespace {

using test::as_signed;
using test::kEveryForm;
using test::width_mask;
using I = __int128;

constexpr u32 kDivisionWidths[] = {2, 4, 6, 8, 10, 16, 18, 32, 64};

struct Pairs {
  std::vector<u64> a, b;
};

Pairs pairs(u32 bits) {
  test::Rng rng = test::test_rng();
  Pairs in;
  test::integer_pairs(in.a, in.b, bits, 60, rng);
  for (int i = 0; i < 60; ++i) {  // short divisors
    in.a.push_back(rng() & width_mask(bits));
    in.b.push_back((rng() & width_mask(bits)) >> rng() % bits);
  }
  return in;
}

std::vector<u64> evaluated(const Circuit& circuit, const Pairs& in, u32 bits, const Blocks& out) {
  auto inputs = test::radix_blocks(in.a, bits);
  for (auto& block : test::radix_blocks(in.b, bits)) inputs.push_back(std::move(block));
  return test::RadixModel(circuit, inputs).integers(out, in.a.size());
}

struct Quotient {
  u64 quotient, remainder;
};
// What IntegerEvaluator::divmod says.
Quotient expected_division(u64 x, u64 y, u32 bits, bool is_signed, bool floored) {
  if (y == 0) return {width_mask(bits), x};
  if (!is_signed) return {x / y, x % y};
  const I a = as_signed(x, bits), d = as_signed(y, bits);
  I q = a / d, r = a % d;
  if (floored && r != 0 && (r < 0) != (d < 0)) q -= 1, r += d;
  return {static_cast<u64>(q) & width_mask(bits), static_cast<u64>(r) & width_mask(bits)};
}

TEST(TfheRadixDivision, EncryptedDivisors) {
  for (const u32 bits : kDivisionWidths) {
    const Pairs in = pairs(bits);
    for (const int kind : {0, 1, 2}) {
      const bool is_signed = kind > 0, floored = kind > 1;
      for (const Form form : kEveryForm) {
        SCOPED_TRACE(cat(bits, " bits, ", kind, form == Form::lean ? " lean" : " not lean"));
        Circuit circuit;
        const Blocks a = circuit.inputs(bits / 2), d = circuit.inputs(bits / 2);
        const Division found =
            is_signed ? divide_signed(circuit, a, d, floored, form) : divide(circuit, a, d, form);
        test::expect_runnable(circuit, found.quotient);
        test::expect_runnable(circuit, found.remainder);
        const auto q = evaluated(circuit, in, bits, found.quotient),
                   r = evaluated(circuit, in, bits, found.remainder);
        for (std::size_t i = 0; i < q.size(); ++i) {
          const auto want = expected_division(in.a[i], in.b[i], bits, is_signed, floored);
          ASSERT_EQ(q[i], want.quotient) << in.a[i] << " / " << in.b[i];
          ASSERT_EQ(r[i], want.remainder) << in.a[i] << " % " << in.b[i];
        }
      }
    }
  }
}

TEST(TfheRadixDivision, PublicOperands) {
  test::Rng rng = test::test_rng();
  for (const u32 bits : {2u, 8u, 16u, 64u}) {
    const u64 mask = width_mask(bits);
    const Pairs in = pairs(bits);
    std::vector<u64> known{1, 2, 3, 7 & mask, 10 & mask, mask, u64(1) << (bits - 1)};
    known.push_back((rng() & mask) | 1);
    for (const u64 k : known) {
      for (const bool is_signed : {false, true}) {
        for (const Form form : kEveryForm) {
          SCOPED_TRACE(cat(bits, " bits, ", k, is_signed ? " signed" : ""));
          Circuit circuit;
          const Blocks a = circuit.inputs(bits / 2), b = circuit.inputs(bits / 2),
                       c = constant_blocks(k, bits);
          const auto divided = [&](const Blocks& x, const Blocks& y) {
            return is_signed ? divide_signed(circuit, x, y, true, form)
                             : divide(circuit, x, y, form);
          };
          const Division by_known = divided(a, c), of_known = divided(c, b);
          const auto q = evaluated(circuit, in, bits, by_known.quotient),
                     r = evaluated(circuit, in, bits, by_known.remainder),
                     p = evaluated(circuit, in, bits, of_known.quotient),
                     s = evaluated(circuit, in, bits, of_known.remainder);
          for (std::size_t i = 0; i < q.size(); ++i) {
            const auto want = expected_division(in.a[i], k, bits, is_signed, true),
                       other = expected_division(k, in.b[i], bits, is_signed, true);
            ASSERT_EQ(q[i], want.quotient) << in.a[i];
            ASSERT_EQ(r[i], want.remainder) << in.a[i];
            ASSERT_EQ(p[i], other.quotient) << in.b[i];
            ASSERT_EQ(s[i], other.remainder) << in.b[i];
          }
        }
      }
    }
  }
}

template <class Build, class Exact>
void expect_checked(Build build, Exact exact) {
  for (const u32 bits : {2u, 4u, 8u, 16u, 32u, 62u}) {
    const Pairs in = pairs(bits);
    for (const bool is_signed : {false, true}) {
      for (const Form form : kEveryForm) {
        SCOPED_TRACE(cat(bits, is_signed ? " bits, signed" : " bits"));
        Circuit circuit;
        const Blocks a = circuit.inputs(bits / 2), b = circuit.inputs(bits / 2);
        const Checked found = build(circuit, a, b, is_signed, form);
        test::expect_runnable(circuit, found.value);
        const auto value = evaluated(circuit, in, bits, found.value),
                   flag = evaluated(circuit, in, bits, {found.overflow});
        for (std::size_t i = 0; i < value.size(); ++i) {
          const auto wide = [&](u64 x) { return is_signed ? I(as_signed(x, bits)) : I(x); };
          const I result = exact(wide(in.a[i]), wide(in.b[i]));
          const u64 low = static_cast<u64>(result) & width_mask(bits);
          ASSERT_EQ(value[i], low) << in.a[i] << ", " << in.b[i];
          ASSERT_EQ(flag[i], u64(wide(low) != result)) << in.a[i] << ", " << in.b[i];
        }
      }
    }
  }
}

TEST(TfheRadixDivision, Overflow) {
  expect_checked(checked_add, [](I x, I y) { return x + y; });
  expect_checked(checked_subtract, [](I x, I y) { return x - y; });
  expect_checked(checked_multiply, [](I x, I y) { return x * y; });
}

TEST(TfheRadixDivision, Tables) {
  test::Rng rng = test::test_rng();
  for (const u32 bits : {2u, 4u, 6u, 8u, 10u, 12u}) {
    const u64 all = u64(1) << bits;
    for (const u64 size : {u64(1), all / 2, all - 1, all, std::min<u64>(all, 1 + rng() % all)}) {
      if (size > 300 && size != all) continue;
      SCOPED_TRACE(cat(size, " entries, ", bits, " bits"));
      std::vector<u64> entries, index;
      std::vector<std::vector<u8>> blocks;
      for (u64 i = 0; i < size; ++i) {
        entries.push_back(rng() & 0xff);
        blocks.emplace_back();
        for (u32 j = 0; j < 4; ++j)
          blocks.back().push_back(static_cast<u8>(entries.back() >> (2 * j) & 3));
      }
      for (u64 i = 0; i < all; ++i) index.push_back(i);
      Circuit circuit;
      const Blocks out = table_entry(circuit, circuit.inputs(bits / 2), blocks, 4);
      test::expect_runnable(circuit, out);
      const auto found =
          test::RadixModel(circuit, test::radix_blocks(index, bits)).integers(out, all);
      for (u64 i = 0; i < all; ++i) ASSERT_EQ(found[i], i < size ? entries[i] : 0) << i;
    }
  }
}

}  // namespace
}  // namespace crenel::tfhe::radix
