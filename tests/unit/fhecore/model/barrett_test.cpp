// Arithmetic of an element of FHECore: every word where there are few, edges and samples at 32
// bits.
#include <gtest/gtest.h>

#include "support/fhecore_world.h"

namespace crenel::test {
namespace {

using namespace fhecore;

// Every modulus and every product of small words: the bound of the quotient estimate.
template <unsigned W>
void exhaust_barrett() {
  for (u32 q = (1u << (W - 4)) + 1; q < 1u << W; ++q) {
    const u64 mu = (u64(1) << (2 * W + 1)) / q;
    for (u64 p = 0; p < u64(1) << (2 * W); ++p) {
      const u64 r = barrett_lazy<W>(p, q, mu);
      ASSERT_LT(r, 2 * q) << "q " << q << " p " << p;
      ASSERT_EQ(r % q, p % q) << "q " << q << " p " << p;
    }
  }
}
TEST(FhecoreBarrett, Exhaustive) {
  exhaust_barrett<6>();
  exhaust_barrett<8>();
}

TEST(FhecoreBarrett, Of32Bits) {
  Rng rng = test_rng();
  const u64 top = ~u64(0);
  for (u32 i = 0; i < 20000; ++i) {
    const u64 modulus = i < 16 ? kEdgeModuli[i] : random_modulus(rng);
    const ColumnConstants c = column_constants(modulus);
    for (const u64 p : {u64(0), u64(c.q) - 1, u64(c.q), top, top - top % c.q, top - top % c.q - 1,
                        rng(), rng() >> (rng() % 64)}) {
      const u64 r = barrett_lazy<32>(p, c.q, c.mu);
      ASSERT_LT(r, 2 * u64(c.q)) << "modulus " << modulus << " p " << p;
      ASSERT_EQ(r % c.q, p % c.q) << "modulus " << modulus << " p " << p;
    }
  }
}

TEST(FhecoreBarrett, SmallWordsAndShapes) {
  Rng rng = test_rng();
  for (u32 repeat = 0; repeat < 2000; ++repeat) {
    Column columns[2];
    for (auto& c : columns) c = {column_constants<6>(1 + rng() % 63), true};
    u32 a[4], b[4], c[4], d[4];
    for (u32 e = 0; e < 4; ++e) {
      a[e] = rng() % 64;
      b[e] = rng() % 64 >> columns[e % 2].constants.shift;
      c[e] = rng() % 64 >> columns[e % 2].constants.shift;
    }
    ASSERT_EQ(fhec<kFormal>(d, a, b, c, columns), 0u);
    for (u32 i = 0; i < 2; ++i)
      for (u32 j = 0; j < 2; ++j) {
        const u32 q = columns[j].constants.q >> columns[j].constants.shift;
        ASSERT_EQ(d[2 * i + j], (a[2 * i] * b[j] + a[2 * i + 1] * b[2 + j] + c[2 * i + j]) % q);
      }
  }
}

}  // namespace
}  // namespace crenel::test
