// Plans of FHECore: counts, use of the array, passes that cover every element, refusals.
#include "device/fhecore/plan.h"

#include <gtest/gtest.h>

#include "crenel/fhecore/unit.h"
#include "support/chains.h"

namespace crenel::test {
namespace {

using device::FhecoreDecomposition;

TEST(FhecorePlan, CountsOfTheTransform) {
  const auto small = device::fhecore_transform_work(16, FhecoreDecomposition::radix16);
  EXPECT_EQ(small.counts.fhe_sync, 1024u);
  EXPECT_EQ(small.counts.fhec, 2048u);
  EXPECT_EQ(small.counts.multiplications, 65536u);
  EXPECT_DOUBLE_EQ(small.use(), 1.0);
  const auto large = device::fhecore_transform_work(16, FhecoreDecomposition::radix256);
  EXPECT_EQ(large.counts.fhe_sync, 8192u);
  EXPECT_EQ(large.counts.fhec, 16384u);
  EXPECT_EQ(large.counts.multiplications, 65536u);
  EXPECT_DOUBLE_EQ(large.use(), 1.0);
  // 2 x 16^3: the first of four passes uses 2 of 16 steps
  const auto odd = device::fhecore_transform_work(13, FhecoreDecomposition::radix16);
  EXPECT_EQ(odd.counts.fhe_sync, 4u * 32);
  EXPECT_DOUBLE_EQ(odd.use(), (3 + 2.0 / 16) / 4);
}

TEST(FhecorePlan, CountsOfTheConversion) {
  const auto w = device::fhecore_conversion_work(16, 9, 27);
  EXPECT_EQ(w.counts.fhe_sync, 8192u);
  EXPECT_EQ(w.counts.fhec, 16384u);
  EXPECT_EQ(w.counts.multiplications, 9u * 65536);
  EXPECT_DOUBLE_EQ(w.depth_use, 9.0 / 16);
  EXPECT_DOUBLE_EQ(w.column_use, 27.0 / 32);
  EXPECT_DOUBLE_EQ(w.use(), 9.0 / 16 * 27 / 32);
  // a right half without live columns is left out
  const auto narrow = device::fhecore_conversion_work(4, 17, 8);
  EXPECT_EQ(narrow.counts.fhe_sync, 2u);
  EXPECT_EQ(narrow.counts.fhec, 2u);
}

TEST(FhecorePlan, PassesCoverEveryElementOnce) {
  for (u32 log_n = 8; log_n <= 17; ++log_n)
    for (const auto d : {FhecoreDecomposition::radix16, FhecoreDecomposition::radix256}) {
      if (d == FhecoreDecomposition::radix256 && log_n != 16) continue;
      u32 bits = 0, twiddled = 0;
      for (const auto& pass : device::fhecore_passes(log_n, d)) {
        SCOPED_TRACE(cat("log_n ", log_n, " radix 2^", pass.log_radix));
        std::vector<u8> seen(std::size_t(1) << log_n);
        for (u32 s = 0; s < pass.strips(); ++s) {
          const device::FhecoreStrip strip(pass, s);
          ASSERT_LE(strip.matrix + u64(pass.side()) * pass.side(), pass.matrix_words());
          for (u32 row = 0; row < pass.side(); ++row)
            for (u32 col = 0; col < 16; ++col) ASSERT_EQ(seen.at(strip.at(row, col))++, 0);
        }
        bits += pass.log_radix;
        twiddled += pass.twiddles;
      }
      EXPECT_EQ(bits, log_n);
      EXPECT_EQ(twiddled, 1u);
    }
}

TEST(FhecorePlan, Refusals) {
  const auto refuse = [](u32 log_n, FhecoreDecomposition d) {
    try {
      static_cast<void>(device::fhecore_transform_work(log_n, d));
      ADD_FAILURE() << log_n;
    } catch (const ParameterError& e) {
      EXPECT_EQ(e.field("log_n"), cat(log_n));
    }
  };
  refuse(7, FhecoreDecomposition::radix16);
  refuse(18, FhecoreDecomposition::radix16);
  refuse(15, FhecoreDecomposition::radix256);
  EXPECT_THROW(static_cast<void>(device::fhecore_conversion_work(3, 1, 1)), ParameterError);
  EXPECT_THROW(static_cast<void>(device::fhecore_conversion_work(8, 0, 1)), ParameterError);
  EXPECT_THROW(static_cast<void>(device::fhecore_decomposition("16^3")), ParameterError);
  for (const auto d : {FhecoreDecomposition::radix16, FhecoreDecomposition::radix256})
    EXPECT_EQ(device::fhecore_decomposition(device::name_of(d)), d);
}

TEST(FhecoreUnit, RefusesValuesWithTheirPlace) {
  const fhecore::Unit unit("ref");
  const std::vector<u64> primes = mixed_primes(8, 2);
  std::vector<u32> x(512), y(512);
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const ParameterError& e) {
      return e.what();
    }
    return "";
  };
  x[300] = static_cast<u32>(primes[1]);
  EXPECT_EQ(message([&] { unit.ntt(y, x, 8, primes); }),
            cat("x[0, 1, 44] = ", x[300], ", expected a residue below ", primes[1]));
  x[300] = 0;
  EXPECT_NE(message([&] { unit.ntt(y, x, 8, {primes[0], primes[0]}); }), "");
  EXPECT_NE(message([&] { unit.ntt(y, x, 8, {primes[0], 15}); }), "");
  EXPECT_NE(message([&] { unit.ntt(std::span(y).first(256), x, 8, primes); }), "");
  EXPECT_NE(message([&] { unit.ntt(y, x, 9, mixed_primes(9, 2)); }), "");
  EXPECT_NE(message([&] { unit.base_convert(y, x, 8, primes, primes); }), "");
  std::vector<u32> a(256), b(256), d(256);
  const std::vector<u64> q{31326209};
  b[16 * 2 + 5] = 1u << 27;
  EXPECT_EQ(message([&] { unit.fhe_sync(d, a, b, {}, q, 1); }),
            "b[0, 2, 5] = 134217728, expected below 2^27 in a column shifted by 5");
  b[16 * 2 + 5] = (1u << 27) - 1;
  EXPECT_EQ(unit.fhe_sync(d, a, b, {}, q, 1).fhec, 2u);
  EXPECT_NE(message([&] { unit.fhe_sync(d, a, b, {}, std::vector<u64>(2, 5), 1); }), "");
  EXPECT_NE(message([&] { unit.fhe_sync(d, a, b, {}, std::vector<u64>{0}, 1); }), "");
  EXPECT_NE(message([&] { unit.fhe_sync(d, a, b, a, q, 2); }), "");
}

}  // namespace
}  // namespace crenel::test
