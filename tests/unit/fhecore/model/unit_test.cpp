// The functional model of FHECore: constants, faults, fragments, tiles.
#include <gtest/gtest.h>

#include "support/fhecore_world.h"

namespace crenel::test {
namespace {

using namespace fhecore;

TEST(FhecoreModel, ConstantsOfEdgeModuli) {
  for (const u64 q : kEdgeModuli) {
    SCOPED_TRACE(q);
    const ColumnConstants c = column_constants(q);
    EXPECT_EQ(c.q, q << c.shift);
    EXPECT_EQ(c.shift == 0, q > (1u << 28));
    if (c.shift != 0) {
      EXPECT_GE(c.q, u32(1) << 29);
      EXPECT_LT(c.q, u32(1) << 30);
    }
    EXPECT_LE(u128(c.mu) * c.q, u128(1) << 65);
    EXPECT_GT(u128(c.mu + 1) * c.q, u128(1) << 65);
    EXPECT_LT(c.mu, u64(1) << 37);
    EXPECT_TRUE(in_range(c));
    EXPECT_EQ(check(c), q);
    const Column column = decode(encode(c));
    EXPECT_TRUE(column.valid);
    EXPECT_EQ(column.constants, c);
  }
}

TEST(FhecoreModel, ConstantsRefuse) {
  for (const u64 q : {u64(0), u64(1) << 32, ~u64(0)}) {
    try {
      static_cast<void>(column_constants(q));
      FAIL() << q;
    } catch (const ParameterError& e) {
      EXPECT_EQ(e.field("modulus"), cat(q));
    }
  }
  EXPECT_THROW(static_cast<void>(column_constants<6>(64)), ParameterError);
  ColumnConstants c = column_constants(65537);
  ++c.mu;
  EXPECT_TRUE(in_range(c));                                   // hardware cannot tell,
  EXPECT_THROW(static_cast<void>(check(c)), ParameterError);  // software must
  c = column_constants(65537);
  ++c.shift;
  EXPECT_THROW(static_cast<void>(check(c)), ParameterError);
}

/// A tile product with memory as fhe_sync wants it.
struct Product {
  alignas(32) u32 a[256] = {}, b[256] = {}, c[256] = {}, d[256] = {};
  ColumnConstants columns[16];
  u32 run(bool with_c = true) { return fhe_sync({d}, {a}, {b}, {with_c ? c : nullptr}, columns); }
  void expect_column(u32 col, u64 q, bool with_c = true) const {
    for (u32 row = 0; row < 16; ++row)
      ASSERT_EQ(d[16 * row + col],
                tile_element(a + 16 * row, b + col, with_c ? c[16 * row + col] : 0, q))
          << "row " << row << " column " << col << " modulo " << q;
  }
};

TEST(FhecoreModel, MixedModuliAnyWords) {
  Rng rng = test_rng();
  for (u32 repeat = 0; repeat < 500; ++repeat) {
    Product p;
    u64 q[16];
    for (u32 j = 0; j < 16; ++j) {
      q[j] = repeat < 16 ? kEdgeModuli[(j + repeat) % 16] : random_modulus(rng);
      p.columns[j] = column_constants(q[j]);
    }
    for (u32 e = 0; e < 256; ++e) {
      const u64 bound = u64(1) << (32 - p.columns[e % 16].shift);  // what the shift rule allows
      const bool top = repeat % 5 == 0;
      p.a[e] = top ? ~u32(0) : static_cast<u32>(rng());
      p.b[e] = static_cast<u32>(top ? bound - 1 : rng() % bound);
      p.c[e] = static_cast<u32>(top ? bound - 1 : rng() % bound);
    }
    ASSERT_EQ(p.run(repeat % 2 == 0), 0u);
    for (u32 j = 0; j < 16; ++j) p.expect_column(j, q[j], repeat % 2 == 0);
  }
}

TEST(FhecoreModel, ResultMayReplaceTheAddend) {
  Rng rng = test_rng();
  Product p;
  for (auto& c : p.columns) c = column_constants(1095761921);
  for (u32 e = 0; e < 256; ++e) p.a[e] = static_cast<u32>(rng()), p.b[e] = p.c[e] = e;
  ASSERT_EQ(p.run(), 0u);
  alignas(32) u32 accumulator[256];
  std::copy_n(p.c, 256, accumulator);
  ASSERT_EQ(fhe_sync({accumulator}, {p.a}, {p.b}, {accumulator}, p.columns), 0u);
  EXPECT_TRUE(std::equal(p.d, p.d + 256, accumulator));
}

TEST(FhecoreModel, OperandFaults) {
  Rng rng = test_rng();
  Product p;
  const u64 q = 31326209;  // 25 bits: shifted by 5, words of 2^27 and more do not fit
  for (auto& c : p.columns) c = column_constants(q);
  for (u32 e = 0; e < 256; ++e) {
    p.a[e] = static_cast<u32>(rng());
    p.b[e] = static_cast<u32>(rng() % q);
    p.c[e] = static_cast<u32>(rng() % q);
  }
  p.b[16 * 15 + 3] = (1u << 27) - 1;
  EXPECT_EQ(p.run(), 0u);
  p.expect_column(3, q);
  p.b[16 * 15 + 3] = 1u << 27;
  p.c[16 * 15 + 9] = ~u32(0);
  EXPECT_EQ(p.run(), 1u << 3 | 1u << 9);
  for (u32 j = 0; j < 16; ++j) {
    if (j != 3 && j != 9) {
      p.expect_column(j, q);
      continue;
    }
    for (u32 row = 0; row < 16; ++row) EXPECT_EQ(p.d[16 * row + j], 0u);
  }
  EXPECT_EQ(p.run(false), 1u << 3);  // without C its words do not matter
}

// The words of a constants register as hardware reads them.
TEST(FhecoreModel, RawConstantFaults) {
  const ConstantWords good = encode(column_constants(1095761921));
  const auto faulty = [&](u32 word, u32 value) {
    ConstantWords w = good;
    w[word] = value;
    u32 words[8][4], a[256], b[128], d[128];
    for (u32 j = 0; j < 8; ++j) std::copy_n((j == 5 ? w : good).data(), 4, words[j]);
    std::fill_n(a, 256, 1);
    std::fill_n(b, 128, 1);
    const u32 faults = fhec_raw(d, a, b, nullptr, words[0]);
    EXPECT_EQ(faults & ~(1u << 5), 0u);
    for (u32 e = 0; e < 128; ++e) {
      if (e % 8 == 5 && faults == 0) continue;  // whatever the wrong constants make of it
      EXPECT_EQ(d[e], e % 8 == 5 ? 0u : 16u);
    }
    return faults != 0;
  };
  EXPECT_FALSE(faulty(0, good[0]));
  EXPECT_TRUE(faulty(0, 0));
  EXPECT_TRUE(faulty(0, 1u << 28));
  EXPECT_FALSE(faulty(0, (1u << 28) + 1));  // in range: the wrong mu is software's mistake
  EXPECT_FALSE(faulty(1, ~u32(0)));
  EXPECT_FALSE(faulty(2, 31));
  for (u32 bit = 5; bit < 8; ++bit) EXPECT_TRUE(faulty(2, good[2] | 1u << bit));
  EXPECT_TRUE(faulty(2, good[2] | 31u << 8));
  for (u32 bit = 13; bit < 32; ++bit) EXPECT_TRUE(faulty(2, good[2] | 1u << bit));
  for (u32 bit = 0; bit < 32; ++bit) EXPECT_TRUE(faulty(3, 1u << bit));
}

// PTX ISA, mma.m16n8k16 with 16-bit elements, restated: groupID = lane >> 2, in_group = lane % 4.
TEST(FhecoreModel, FragmentsFollowThePtxMap) {
  for (u32 lane = 0; lane < 32; ++lane) {
    const u32 group = lane >> 2, in_group = lane % 4;
    for (u32 i = 0; i < 8; ++i) {
      const bool upper = i < 2 || (i >= 4 && i < 6);
      const Element e = MapA::element({lane, i});
      EXPECT_EQ(e.row, upper ? group : group + 8);
      EXPECT_EQ(e.col, in_group * 2 + (i & 1) + (i < 4 ? 0 : 8));
      EXPECT_EQ(MapA::place(e), (Place{lane, i}));
    }
    for (u32 i = 0; i < 4; ++i) {
      const Element b = MapB::element({lane, i});
      EXPECT_EQ(b.row, in_group * 2 + (i & 1) + (i < 2 ? 0 : 8));
      EXPECT_EQ(b.col, group);
      EXPECT_EQ(MapB::place(b), (Place{lane, i}));
      const Element c = MapC::element({lane, i});
      EXPECT_EQ(c.row, i < 2 ? group : group + 8);
      EXPECT_EQ(c.col, in_group * 2 + (i & 1));
      EXPECT_EQ(MapC::place(c), (Place{lane, i}));
    }
  }
  static_assert(MapA::element({5, 6}) == Element{9, 10});
}

TEST(FhecoreModel, FragmentsAgreeWithTiles) {
  Rng rng = test_rng();
  Product p;
  for (u32 j = 0; j < 16; ++j) p.columns[j] = column_constants(kEdgeModuli[j]);
  for (u32 e = 0; e < 256; ++e) {
    p.a[e] = static_cast<u32>(rng());
    p.b[e] = static_cast<u32>(rng() % kEdgeModuli[e % 16]);
    p.c[e] = static_cast<u32>(rng() % kEdgeModuli[e % 16]);
  }
  p.b[7] = ~u32(0);  // a fault in column 7, modulus 2^28 - 1
  const u32 faults = p.run();
  EXPECT_EQ(faults, 1u << 7);
  SyncB b;
  SyncC c, d;
  SyncConstants constants;
  for (u32 h = 0; h < 2; ++h) {
    u32 columns_b[128], columns_c[128];
    for (u32 e = 0; e < 128; ++e) {
      columns_b[e] = p.b[e / 8 * 16 + 8 * h + e % 8];
      columns_c[e] = p.c[e / 8 * 16 + 8 * h + e % 8];
    }
    b.half[h] = to_fragment<MapB>(columns_b);
    c.half[h] = to_fragment<MapC>(columns_c);
    constants.half[h] = to_fragment(p.columns + 8 * h);
  }
  EXPECT_EQ(constants.half[1].at[3], p.columns[11].q);
  EXPECT_EQ(constants.half[1].at[11], static_cast<u32>(p.columns[11].mu));
  EXPECT_EQ(fhe_sync(d, to_fragment<MapA>(p.a), b, &c, constants), faults);
  for (u32 h = 0; h < 2; ++h) {
    u32 result[128];
    to_dense(result, d.half[h]);
    for (u32 e = 0; e < 128; ++e) ASSERT_EQ(result[e], p.d[e / 8 * 16 + 8 * h + e % 8]);
  }
}

TEST(FhecoreModel, TilesOfLargerMatrices) {
  Rng rng = test_rng();
  alignas(32) static u32 a[16 * 40], b[16 * 24], d[16 * 16];
  for (auto& x : a) x = static_cast<u32>(rng());
  for (auto& x : b) x = static_cast<u32>(rng() % 65537);
  EXPECT_EQ(fhe_sync({d}, {a + 16, 40}, {b + 8, 24}, {}, std::vector<u64>{65537}), 0u);
  for (u32 row = 0; row < 16; ++row)
    for (u32 col = 0; col < 16; ++col) {
      u128 sum = 0;
      for (u32 k = 0; k < 16; ++k) sum += u128(a[40 * row + 16 + k]) * b[24 * k + 8 + col];
      ASSERT_EQ(d[16 * row + col], static_cast<u32>(sum % 65537));
    }
  const std::vector<u64> q{65537};
  EXPECT_THROW(fhe_sync({d}, {a + 1, 40}, {b, 24}, {}, q), ParameterError);
  EXPECT_THROW(fhe_sync({d}, {a, 41}, {b, 24}, {}, q), ParameterError);
  EXPECT_THROW(fhe_sync({d}, {a, 12}, {b, 24}, {}, q), ParameterError);
  EXPECT_THROW(fhe_sync({nullptr}, {a, 40}, {b, 24}, {}, q), ParameterError);
  EXPECT_THROW(fhe_sync({d}, {a, 40}, {b, 24}, {}, std::vector<u64>(8, 5)), ParameterError);
  EXPECT_THROW(fhe_sync({d}, {a, 40}, {b, 24}, {}, std::vector<u64>{0}), ParameterError);
}

}  // namespace
}  // namespace crenel::test
