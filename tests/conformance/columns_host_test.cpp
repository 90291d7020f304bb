// CUDA's base conversion with the column pass of its results on the host, all threads of a block:
// what it gives is congruent to what the definitions say, with any number of folded matrices.
#include "support/host_block.h"

//
#include <bit>
#include <cmath>

static uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }
static uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
template <class T>
static T __ldg(const T* p) {
  return *p;
}
[[maybe_unused]] static int __clz(unsigned x) { return std::countl_zero(x); }
static float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
static float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
static unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
static crenel::i64 __shfl_xor_sync(unsigned, crenel::i64 value, unsigned mask) {
  const auto bits = static_cast<crenel::u64>(value);
  const unsigned from = (threadIdx.x & 31) ^ mask;
  return crenel::test::HostBlocks::current().meet(
      {static_cast<unsigned>(bits), static_cast<unsigned>(bits >> 32)}, [&](const auto& of) {
        const auto words = of(from);
        return static_cast<crenel::i64>(crenel::u64(words[1]) << 32 | words[0]);
      });
}

namespace crenel::backend::cuda {
inline void barrier() { test::HostBlocks::current().sync_block(); }
inline void multiply_bytes(u32 (&d)[4], const u32 (&c)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0,
                           u32 b1) {
  const u32 lane = threadIdx.x & 31;
  const auto sums = test::HostBlocks::current().meet({a0, a1, a2, a3, b0, b1}, [&](const auto& of) {
    std::array<u32, 4> sum = {};
    for (u32 quad = 0; quad < 4; ++quad)
      for (u32 i = 0; i < 4; ++i) {
        const auto rows = of(lane / 4 * 4 + quad),
                   columns = of((2 * (lane % 4) + i % 2) * 4 + quad);
        for (u32 half = 0; half < 2; ++half)
          for (u32 shift = 0; shift < 32; shift += 8)
            sum[i] += (rows[i / 2 + 2 * half] >> shift & 255) * (columns[4 + half] >> shift & 255);
      }
    return sum;
  });
  for (u32 i = 0; i < 4; ++i) d[i] = c[i] + sums[i];
}
inline void multiply_bytes(u32 (&d)[4], const u32 (&c)[4], u32 a0, u32 a1, u32 b0) {
  multiply_bytes(d, c, a0, a1, 0, 0, b0, 0);
}
}  // namespace crenel::backend::cuda

#include "backends/cuda/poly/host/column_items.h"
#include "backends/cuda/poly/host/conversion_rows.h"
#include "backends/cuda/poly/kernels/convert_columns.cuh"
#include "math/primes.h"
#include "support/context.h"
#include "support/random.h"

namespace crenel::test {
namespace {

using namespace backend::cuda;

// One conversion with its tables, and a polynomial of sources, each in [0, its prime).
struct Conversion {
  Conversion(const ring::Ring& r, const rns::BaseConversion& conversion,
             const std::vector<u32>* factors, Rng& rng)
      : ring(r), table(conversion), factor(factors), output(conversion.destination) {
    const ConversionInput input = {&table, 0, &output, factor};
    padded = padded_sources(columns_of(table));
    append_rows(input, ring, padded, folded, rows);
    for (u32 j = 0; j < table.source.size(); ++j) {
      std::uniform_int_distribution<u32> value(0, ring.modulus(table.source[j]).q - 1);
      for (u64 n = 0; n < ring.ring_dim(); ++n) in.push_back(value(rng));
    }
    for (u32 j = 0; j < padded && table.rounded(); ++j)
      reciprocals.push_back(j < table.source.size() ? table.reciprocal[j] : 0);
    for (u32 id = 0; id < ring.prime_count(); ++id)
      for (u64 i = 0; i < ring.ring_dim() / 16; ++i)
        roots.push_back({ring.prime(id).roots[i].value, ring.prime(id).roots[i].quotient});
  }

  ConvertColumnsArgs args(u32 matrices, const std::vector<ColumnItem>& items,
                          std::vector<u32>& out) const {
    ConvertColumnsArgs a = {};
    a.in = {in.data(), 0, 0}, a.out = {out.data(), 0, 0};
    a.matrices = matrices == 0 ? rows.matrices.data() : rows.folded.data();
    a.targets = rows.column_targets.data(), a.reciprocals = reciprocals.data();
    a.roots = roots.data(), a.digits = a.components = 1;
    a.digit[0] = {0,
                  0,
                  0,
                  0,
                  static_cast<u8>(table.source.size()),
                  static_cast<u8>(table.shift),
                  static_cast<u8>(padded),
                  rounding_of(table)};
    std::copy(items.begin(), items.end(), a.item);
    return a;
  }

  // Coefficient n of destination i, by definition.
  u32 converted(u32 i, u64 n) const {
    const math::Modulus<u32>& m = ring.modulus(table.destination[i]);
    const u32 sources = table.source.size();
    u32 sum = table.offset[i];
    i64 quotient = table.rounded() ? i64(1) << (table.shift - 1) : 0;
    for (u32 j = 0; j < sources; ++j) {
      const u32 z = in[(u64(j) << ring.log_n()) + n];
      sum = math::add_mod<u32>(sum, math::mul_mod<u32>(z % m.q, table.matrix[i * sources + j], m),
                               m.q);
      if (table.rounded()) quotient += (i64(z) - table.half[j]) * i64(table.reciprocal[j]);
    }
    if (table.rounded()) {
      const i64 k = quotient >> table.shift;
      const u32 whole = static_cast<u32>((k % m.q + m.q) % m.q);
      sum = math::add_mod<u32>(
          sum, math::neg_mod<u32>(math::mul_mod<u32>(whole, table.product[i], m), m.q), m.q);
    }
    return factor == nullptr ? sum : math::mul_mod<u32>(sum, (*factor)[i], m);
  }

  // A column of destination i after the first stages of a transform.
  std::vector<u32> column(u32 i, u32 at) const {
    const u32 bits = column_bits(ring.log_n()), row = row_bits(ring.log_n());
    const ring::PrimeTables& p = ring.prime(table.destination[i]);
    const math::Modulus<u32>& m = p.modulus;
    std::vector<u32> x;
    for (u32 r = 0; r < 1u << bits; ++r) x.push_back(converted(i, (u64(r) << row) + at));
    for (u32 stage = 0; stage < bits; ++stage)
      for (u32 block = 0, half = 1u << (bits - stage - 1); block < 1u << stage; ++block)
        for (u32 r = 2 * half * block; r < half * (2 * block + 1); ++r) {
          const u32 t = math::mul_mod<u32>(x[r + half], p.roots[(1u << stage) + block].value, m),
                    s = x[r];
          x[r] = math::add_mod<u32>(s, t, m.q);
          x[r + half] = math::add_mod<u32>(s, math::neg_mod<u32>(t, m.q), m.q);
        }
    return x;
  }

  const ring::Ring& ring;
  const rns::BaseConversion& table;
  const std::vector<u32>* factor;
  rns::LimbSet output;
  u32 padded = 0;
  bool folded = true;
  Rows rows;
  std::vector<u32> in, reciprocals;
  std::vector<uint2> roots;
};

// How sources lie, and whether two blocks bring them together.
enum class Layout { rows, tiles, pairs };

template <u32 LogN, u32 Sources, u32 Matrices>
void expect_definition(const Conversion& c, Layout layout, Rng& rng) {
  ASSERT_EQ(c.padded, Sources);
  ASSERT_TRUE(c.folded);
  const u32 destinations = c.table.destination.size(), row = row_bits(LogN);
  constexpr u32 kColumns = kFusedValues >> kColumnBits<LogN>;
  std::vector<u32> cuts = {0, destinations};  // of four items, in any order
  while (cuts.size() < 5) {
    const u32 cut = 1 + static_cast<u32>(rng() % (destinations - 1));
    if (std::find(cuts.begin(), cuts.end(), cut) == cuts.end()) cuts.push_back(cut);
  }
  std::sort(cuts.begin(), cuts.end());
  std::vector<ColumnItem> items;
  for (u32 i = 0; i < 4; ++i)
    items.push_back({0, static_cast<u8>(cuts[i]), static_cast<u8>(cuts[i + 1] - cuts[i])});
  std::shuffle(items.begin(), items.end(), rng);
  constexpr u32 kUntouched = ~u32(0);
  std::vector<u32> out(u64(destinations) << LogN, kUntouched);
  ConvertColumnsArgs args = c.args(Matrices, items, out);
  std::vector<u32> tiles(c.in.size());
  for (u64 i = 0; i < tiles.size(); ++i) {
    const u32 n = static_cast<u32>(i % (1u << LogN));
    tiles[i - n + TiledSources<LogN>::at(n >> row, n % (1u << row))] = c.in[i];
  }
  args.tiled = layout != Layout::rows, args.paired = layout == Layout::pairs;
  if (args.tiled != 0) args.in.data = tiles.data();
  const u32 tile = static_cast<u32>(rng() % ((1u << row) / kColumns));
  const std::function<void()> body = [&] { convert_columns<LogN, Sources, Matrices>(args); };
  const u32 blocks = 1 + args.paired;
  for (u32 z = 0; z < items.size() / blocks; ++z)
    HostBlocks::current().run({tile * blocks, 0, z}, blocks, kFusedThreads, kFusedThreads, body);
  for (u32 i = 0; i < destinations; ++i) {
    const u32 q = c.ring.modulus(c.table.destination[i]).q;
    for (u32 at = 0; at < kColumns; at += 3) {
      const auto expected = c.column(i, tile * kColumns + at);
      for (u32 r = 0; r < expected.size(); ++r) {
        const u32 found = out[(u64(i) << LogN) + (u64(r) << row) + tile * kColumns + at];
        ASSERT_LT(u64(found), 2 * u64(q)) << i << ", " << r << ", " << at;
        ASSERT_EQ(found % q, expected[r]) << i << ", " << r << ", " << at << " of " << Matrices;
      }
    }
  }
  EXPECT_EQ(std::count_if(out.begin(), out.end(), [](u32 x) { return x != kUntouched; }),
            i64(destinations) * kFusedValues);
}

// Primes around 2^30, the largest ones, and small ones.
std::vector<u64> primes_of(u32 log_n) {
  std::vector<u64> primes;
  const auto add = [&](u64 centre, u32 count) {
    const auto more =
        math::nearest_ntt_primes(centre, count, centre / 4 * 3, u64(1) << 31, u64(2) << log_n);
    for (const u64 p : more)
      if (std::find(primes.begin(), primes.end(), p) == primes.end()) primes.push_back(p);
  };
  add(u64(1) << 30, 22);
  add((u64(1) << 31) - (u64(1) << 24), 12);
  add(u64(1) << 29, 3);
  add(u64(1) << 25, 3);
  return primes;
}

template <u32 LogN, u32 Sources>
void expect_all(u32 alpha, bool divide, Rng& rng) {
  const auto ring = shared_ring(LogN, primes_of(LogN));
  const auto moduli = moduli_of(*ring);
  const u32 all = ring->prime_count();
  rns::BaseConversion table;
  std::vector<u32> factors;
  if (divide) {
    const auto whole =
        rns::make_divide(moduli, rns::LimbSet::range(0, all), rns::LimbSet::range(0, all - alpha));
    table = whole.conversion;
    for (const auto& f : whole.result_scale) factors.push_back(f.value);
  } else {
    table = rns::make_mod_up(moduli, rns::LimbSet::range(0, all - 12),
                             rns::LimbSet::range(all - 12, all), alpha)
                .digits[0]
                .conversion;
  }
  const Conversion c(*ring, table, divide ? &factors : nullptr, rng);
  for (const Layout layout : {Layout::rows, Layout::tiles, Layout::pairs})
    expect_definition<LogN, Sources, 4>(c, layout, rng);
  expect_definition<LogN, Sources, 0>(c, Layout(rng() % 3), rng);
  expect_definition<LogN, Sources, 2>(c, Layout(rng() % 3), rng);
}

TEST(CudaColumns, AreWhatTheDefinitionsSay) {
  Rng rng = test_rng();
  expect_all<16, 12>(12, false, rng);
  expect_all<16, 16>(14, true, rng);
  expect_all<15, 4>(2, true, rng);
  expect_all<14, 8>(7, false, rng);
}

// Sums that can come, of any prime with constants: the quotient is right to one.
TEST(CudaColumns, QuotientsAreEstimatedWithinOne) {
  Rng rng = test_rng();
  constexpr u32 kMostSum = 16 * 4 * 255 * 255 * 257;  // of bytes of 16 sources, two by two
  for (u32 round = 0; round < 2000; ++round) {
    // 1 modulo 2^15, as primes of the rings with instances are; from 2^24.5 on
    const u32 low = std::max(1u << (24 + rng() % 7), 23726567u);
    const u32 q = (low + static_cast<u32>(rng() % std::min(low, (1u << 31) - low))) >> 15 << 15 | 1;
    if (std::has_single_bit(q - 1)) continue;  // never a prime here, and 2^25 + 1 has none
    const auto constants = folded_constants(q);
    ASSERT_TRUE(constants) << q;
    const auto expect = [&](u32 l, u32 h, u32 start) {
      const u32 found = reduce_estimated(start + constants->excess + l, h, constants->scale,
                                         constants->shift, q, kFloatExponent);
      ASSERT_LT(u64(found), 2 * u64(q)) << q << ", " << l << ", " << h << ", " << start;
      ASSERT_EQ(found % q, (u64(start) + l + (u64(h) << 16)) % q) << q;
    };
    const u64 most = std::min(u64(64 * 255) * q, (u64(kMostSum) << 16) + kMostSum);
    const auto expect_sum = [&](u64 sum, u32 start) {  // as much as can be in the lower word
      const u32 l = static_cast<u32>(std::min<u64>(rng() % kMostSum, sum) >> 16 << 16);
      const u64 rest = sum - l;
      if (rest >> 16 <= kMostSum) expect(l + (rest & 0xffff), static_cast<u32>(rest >> 16), start);
      if (sum >> 16 <= kMostSum) expect(sum & 0xffff, static_cast<u32>(sum >> 16), start);
    };
    expect(0, 0, 0);
    expect_sum(most, q - 1);
    for (u32 i = 0; i < 100; ++i) {
      const u64 sum = rng() % (most + 1) >> rng() % 40;
      expect_sum(sum, static_cast<u32>(rng() % q));
      expect_sum(std::min(sum / q * q, most), 0);  // next to multiples of q
      if (sum >= q) expect_sum(sum / q * q - 1, 0);
    }
  }
  EXPECT_FALSE(folded_constants((1u << 24) - 3));
}

// Of whole steps alone: as many a block as steps are shared by, so that what was measured with them
// stays what it is. Otherwise never more for the busiest.
TEST(CudaColumns, ItemsOfWholeSteps) {
  EXPECT_EQ(column_cost(8), 8 * (kFusedSetup + 8));
  EXPECT_EQ(column_cost(12), column_cost(8) + 8 * kFusedProducts + (8 - kFusedProducts) * 4);
  const auto counts = [](u32 destinations, u32 copies, u32 granule) {
    std::vector<u32> list;
    for (const ColumnItem& item : column_items({{0, destinations}}, copies, 132, 64, granule))
      list.push_back(item.count);
    return list;
  };
  EXPECT_EQ(counts(23, 64, 8), (std::vector<u32>{16, 7}));
  EXPECT_EQ(counts(23, 64, 1), (std::vector<u32>{12, 11}));
  EXPECT_EQ(counts(47, 128, 8), std::vector<u32>{47});
  EXPECT_EQ(counts(47, 128, 1), std::vector<u32>{47});
}

TEST(CudaColumns, ItemsInPairsHaveOneDigit) {
  const auto paired = [](std::vector<ColumnItem> items, u32 processors) {
    std::vector<u32> list;
    const bool done = pair_items(items, 32, processors);
    for (const ColumnItem& item : items) list.push_back(10 * item.digit + item.count);
    return std::pair(done, list);
  };
  using Found = std::pair<bool, std::vector<u32>>;
  const std::vector<ColumnItem> mixed = {{0, 12, 8}, {1, 8, 8}, {1, 0, 7}, {0, 0, 4}};
  EXPECT_EQ(paired(mixed, 128), Found(true, {8, 4, 18, 17}));
  EXPECT_EQ(paired(mixed, 127), Found(false, {8, 18, 17, 4}));  // not all at once
  EXPECT_EQ(paired({{1, 0, 1}, {1, 1, 2}, {1, 3, 3}, {1, 6, 4}}, 132),
            Found(true, {11, 12, 13, 14}));
  EXPECT_EQ(paired({{0, 0, 1}, {1, 3, 3}, {0, 1, 2}}, 132), Found(false, {1, 13, 2}));
  EXPECT_EQ(paired({{0, 0, 1}, {1, 1, 2}}, 132), Found(false, {1, 12}));
  Rng rng = test_rng();
  for (u32 round = 0; round < 200; ++round) {
    std::vector<ColumnRange> ranges;
    for (u32 d = 0, digits = 1 + rng() % 5; d < digits; ++d)
      ranges.push_back({0, static_cast<u32>(rng() % 60)});
    const u32 copies = 1 + rng() % 64;
    const auto items = column_items(ranges, copies, 132, 64, 1 + rng() % 8);
    auto pairs = items;
    const bool done = pair_items(pairs, copies, 132);
    std::map<u32, u32> of_digit;
    for (const ColumnItem& item : items) ++of_digit[item.digit];
    EXPECT_EQ(done, copies * items.size() <= 132 &&
                        std::all_of(of_digit.begin(), of_digit.end(),
                                    [](const auto& digit) { return digit.second % 2 == 0; }));
    const auto keys = [](const std::vector<ColumnItem>& of) {
      std::vector<std::array<u8, 3>> list;
      for (const ColumnItem& i : of) list.push_back({i.digit, i.begin, i.count});
      return list;
    };
    auto before = keys(items), after = keys(pairs);
    if (!done) {
      EXPECT_EQ(before, after);
      continue;
    }
    for (u32 i = 0; i < pairs.size(); i += 2) EXPECT_EQ(pairs[i].digit, pairs[i + 1].digit);
    std::sort(before.begin(), before.end()), std::sort(after.begin(), after.end());
    EXPECT_EQ(before, after);
  }
}

// Every destination once, no item too long, and the best of the numbers of steps that are tried.
TEST(CudaColumns, ItemsShareTheDestinations) {
  Rng rng = test_rng();
  for (u32 round = 0; round < 300; ++round) {
    std::vector<ColumnRange> ranges;
    std::vector<std::vector<u32>> done;
    for (u32 d = 0, digits = 1 + rng() % 6; d < digits; ++d) {
      const u32 begin = rng() % 30;
      ranges.push_back({begin, begin + static_cast<u32>(rng() % 70)});
      done.emplace_back(100);
    }
    const u32 copies = 1 + rng() % 300, processors = 1 + rng() % 200, most = 8 * (1 + rng() % 8);
    const u32 granule = 1 + rng() % 8;
    const auto items = column_items(ranges, copies, processors, most, granule);
    for (const ColumnItem& item : items) {
      ASSERT_LE(item.count, most);
      for (u32 i = 0; i < item.count; ++i) ++done[item.digit][item.begin + i];
    }
    for (u32 d = 0; d < ranges.size(); ++d)
      for (u32 i = 0; i < 100; ++i)
        ASSERT_EQ(done[d][i], i >= ranges[d].begin && i < ranges[d].end) << d << ", " << i;
    const u64 span = column_makespan(items, copies, processors, granule);
    u64 work = 0;
    for (const ColumnItem& item : items) work += copies * column_cost(item.count);
    EXPECT_GE(span * processors, work);
    for (u32 steps = 1; steps <= most / 8; ++steps)
      for (const u32 multiple : {8u, granule})
        EXPECT_LE(span, column_makespan(even_items(ranges, steps, multiple), copies, processors,
                                        granule));
  }
}

}  // namespace
}  // namespace crenel::test
