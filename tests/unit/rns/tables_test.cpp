// Tables of base conversion, ModUp and division against 128-bit integers; limb sets.
#include "rns/tables.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/chains.h"
#include "support/random.h"

namespace crenel::rns {
namespace {

using test::Rng;
using test::test_rng;

Moduli moduli(const std::vector<u64>& primes) {
  Moduli m;
  for (const u64 p : primes) m.emplace_back(static_cast<u32>(p));
  return m;
}

// Small enough for products of four in 128 bits, with a wide spread.
const std::vector<u64> kPrimes{1095761921, 31326209,   2147352577, 786433,
                               526123009,  1040842753, 2146959361, 35389441};

LimbSet set(std::initializer_list<u32> ids) {
  LimbSet s;
  for (const u32 id : ids) s.push_back(id);
  return s;
}

i128 product(const LimbSet& s) {
  i128 d = 1;
  for (u32 i = 0; i < s.size(); ++i) d *= kPrimes[s[i]];
  return d;
}

i128 modulo(i128 x, i128 q) {
  const i128 r = x % q;
  return r < 0 ? r + q : r;
}

// The integer sum_j y_j (D/d_j) that the centred definition names, less u D where it is rounded.
i128 centred_value(const BaseConversion& table, i128 x, i128 d_product) {
  i128 sum = 0, fraction = 0;
  for (u32 j = 0; j < table.source_size(); ++j) {
    const i128 d = kPrimes[table.source[j]];
    i128 y = modulo(x, d) * table.source_scale[j].value % d;
    if (y > (d - 1) / 2) y -= d;
    sum += y * (d_product / d);
    if (table.rounded()) fraction += y * table.reciprocal[j];
  }
  if (!table.rounded()) return sum;
  const i128 one = i128(1) << table.shift;
  const i128 u = (fraction + one / 2 - modulo(fraction + one / 2, one)) / one;
  EXPECT_LE(u < 0 ? -u : u, table.largest_quotient());
  return sum - u * d_product;
}

TEST(Tables, BaseConversionIsTheIntegerFormula) {
  Rng rng = test_rng();
  const auto m = moduli(kPrimes);
  const LimbSet sources[] = {set({0}), set({1, 3}), set({2, 4, 0}), set({3, 1, 7, 2})};
  const LimbSet destination = set({5, 6});
  for (const auto& source : sources) {
    const auto table = make_base_conversion(m, source, destination);
    const i128 d_product = product(source);
    const u32 n = source.size();
    for (int round = 0; round < 200; ++round) {
      const i128 x = static_cast<i128>((u128(rng()) << 64 | rng()) % static_cast<u128>(d_product));
      const i128 value = centred_value(table, x, d_product);
      EXPECT_EQ(modulo(value - x, d_product), 0) << "congruent to x";
      const i128 magnitude = value < 0 ? -value : value;
      EXPECT_LE(magnitude, d_product / 2 * n) << "at most n/2 times D";
      for (u32 i = 0; i < destination.size(); ++i) {
        // The unsigned form that backends compute: half, offset and matrix together.
        const i128 p = kPrimes[destination[i]];
        i128 sum = table.offset[i];
        for (u32 j = 0; j < n; ++j) {
          const i128 d = kPrimes[source[j]];
          const i128 z = (modulo(x, d) * table.source_scale[j].value + table.half[j]) % d;
          sum = (sum + z * table.matrix[i * n + j]) % p;
        }
        EXPECT_EQ(sum, modulo(value, p));
      }
    }
  }
}

// A rounded conversion leaves at most half of D, and the stated share more by its reciprocals; the
// unsigned form that backends compute is the same number.
TEST(Tables, RoundedConversionIsWithinHalf) {
  Rng rng = test_rng();
  const auto m = moduli(kPrimes);
  const LimbSet destination = set({5, 6});
  for (const auto& source : {set({0}), set({1, 3}), set({2, 4, 0}), set({3, 1, 7, 2})}) {
    const auto table = make_base_conversion(m, source, destination, {}, Quotient::rounded);
    const u32 n = source.size();
    EXPECT_EQ(table.rounded(), n > 1) << "one source is rounded already";
    const i128 d_product = product(source);
    long double share = 0.5L;
    for (u32 j = 0; j < table.reciprocal.size(); ++j) {
      EXPECT_LT(table.reciprocal[j], u32(1) << 31);
      share += std::ldexp(static_cast<long double>(kPrimes[source[j]]), -int(table.shift + 1));
    }
    for (int round = 0; round < 400; ++round) {
      // every other one next to a tie
      i128 x = static_cast<i128>((u128(rng()) << 64 | rng()) % static_cast<u128>(d_product));
      if (round % 2) x = d_product / 2 + static_cast<i128>(rng() % 5) - 2;
      const i128 value = centred_value(table, x, d_product);
      EXPECT_EQ(modulo(value - x, d_product), 0) << "congruent to x";
      EXPECT_LE(std::abs(static_cast<long double>(value)),
                share * static_cast<long double>(d_product) + 1);
    }
  }
}

TEST(Tables, LazyTermsNeverOverflow) {
  const auto primes = test::largest_primes(10, 20);
  const auto m = moduli(primes);
  for (u32 n = 1; n <= 17; ++n) {
    const auto table = make_base_conversion(m, LimbSet::range(0, n), LimbSet::range(17, 20));
    ASSERT_GE(table.lazy_terms, 1u);
    ASSERT_LE(table.lazy_terms, n);
    // Whether runs of `terms` products and a value below p stay in a double word, 30 bits dropped
    // so that this sum itself cannot overflow (rounded up: a safe bound).
    const auto fits = [&](u32 terms) {
      for (u32 i = 0; i < 3; ++i)
        for (u32 first = 0; first < n; first += terms) {
          long double sum = primes[17 + i];
          for (u32 j = first; j < std::min(n, first + terms); ++j)
            sum += static_cast<long double>(table.matrix[i * n + j]) *
                   static_cast<long double>(primes[j] - 1);
          if (sum >= std::ldexp(1.0L, 64)) return false;
        }
      return true;
    };
    EXPECT_TRUE(fits(table.lazy_terms)) << n;
    if (table.lazy_terms < n) {
      EXPECT_FALSE(fits(table.lazy_terms + 1)) << "could be longer, n = " << n;
    }
  }
}

TEST(Tables, ModUpDigits) {
  const auto chain = test::toy_chain(2, 9, 4);
  const auto m = moduli(chain.primes);
  const auto table = make_mod_up(m, LimbSet::range(3, 10), LimbSet::range(11, 15), 4);
  ASSERT_EQ(table.digits.size(), 3u);
  const u32 expected[3][2] = {{0, 1}, {1, 4}, {5, 2}};  // ids 3 | 4..7 | 8, 9
  LimbSet seen;
  for (u32 d = 0; d < 3; ++d) {
    const auto& digit = table.digits[d];
    EXPECT_EQ(digit.first, expected[d][0]);
    EXPECT_EQ(digit.count, expected[d][1]);
    EXPECT_EQ(digit.conversion.destination, table.output.minus(digit.conversion.source));
    EXPECT_EQ(digit.conversion.source,
              LimbSet::range(3 + digit.first, 3 + digit.first + digit.count));
    seen = seen.concat(digit.conversion.source);
  }
  EXPECT_EQ(seen, table.input);
  EXPECT_EQ(table.output, LimbSet::range(3, 10).concat(LimbSet::range(11, 15)));
}

// y of Divide is (A x - s) / B exactly, with s the centred value: an integer near A x / B.
TEST(Tables, DivideIsExactDivision) {
  Rng rng = test_rng();
  const auto m = moduli(kPrimes);
  const LimbSet input = set({0, 1, 4, 7}), output = set({3, 0, 4});
  const auto table = make_divide(m, input, output);
  EXPECT_EQ(table.dropped, set({1, 7}));
  EXPECT_EQ(table.added, set({3}));
  const i128 a = kPrimes[3], b = product(table.dropped);
  for (int round = 0; round < 300; ++round) {
    const i128 x = static_cast<i128>(rng() >> 4) - (i128(1) << 59);  // A x and the remainder fit
    const i128 remainder = centred_value(table.conversion, modulo(x, b), b);
    ASSERT_EQ(modulo(a * x - remainder, b), 0) << "source_scale includes A";
    const i128 y = (a * x - remainder) / b;
    for (u32 i = 0; i < output.size(); ++i) {
      const i128 p = kPrimes[output[i]];
      const i128 kept = modulo(x, p) * table.input_scale[i].value % p;
      const i128 removed = modulo(remainder, p) * table.result_scale[i].value % p;
      ASSERT_EQ(modulo(kept - removed, p), modulo(y, p)) << "limb " << i;
    }
  }
}

TEST(LimbSets, Operations) {
  const LimbSet a = set({3, 5, 9}), b = set({9, 4, 3});
  EXPECT_EQ(a.minus(b), set({5}));
  EXPECT_EQ(a.intersect(b), set({3, 9}));
  EXPECT_EQ(a.minus(b).concat(b), set({5, 9, 4, 3}));
  EXPECT_EQ(a.find(9), 2);
  EXPECT_EQ(a.find(4), -1);
  EXPECT_TRUE(a.contains_all(set({9, 3})));
  EXPECT_FALSE(a.contains_all(b));
  EXPECT_FALSE(a == set({3, 5}));
  LimbSet full = LimbSet::range(0, kMaxLimbs);
  EXPECT_THROW(full.push_back(0), ParameterError);
  LimbSet empty;
  EXPECT_THROW(empty.push_back(kMaxLimbs), ParameterError);
}

}  // namespace
}  // namespace crenel::rns
