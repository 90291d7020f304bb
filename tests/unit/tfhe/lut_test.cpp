// Padded look-up tables, linear combinations, known messages.
#include "support/tfhe_world.h"
#include "tfhe/test_polynomial.h"

namespace crenel::tfhe {
namespace {

using test::Messages;

Lut random_lut(test::Rng& rng, u32 entries, u64 limit, u32 out_modulus = 0) {
  return {test::random_messages(rng, entries, limit), out_modulus};
}

class TfheLut : public test::TfheTest {
 protected:
  std::vector<const char*> names() const {
    if (!exhaustive()) return {"padded:r3"};
    return {"padded:exact", "padded:approx:r3", "padded:binary", "padded:binary:r5", "toy-lut4"};
  }
};

TEST_P(TfheLut, AnyPaddedTableInOneBootstrap) {
  auto rng = test::test_rng();
  for (const char* name : names()) {
    auto& w = world(name);
    const u32 half = w.params().spec().plain_modulus / 2;
    Messages x(3 * half);
    for (u64 i = 0; i < x.size(); ++i) x[i] = i % half;
    for (int t = 0; t < (exhaustive() ? 8 : 2); ++t) {
      const Lut f = random_lut(rng, half, half);
      const Ciphertext y = w.ev.lut(w.client.encrypt(x), f);
      EXPECT_EQ(y.plain_modulus(), 2 * half);
      EXPECT_EQ(w.client.decrypt(y), test::map_messages(x, [&](u64 m) { return f.table[m]; }))
          << name;
    }
  }
}

TEST_P(TfheLut, InputAndOutputModuliMayDiffer) {
  auto rng = test::test_rng();
  auto& w = world("padded:r3");
  for (u32 p : {4u, 8u, 12u, 16u})
    for (u32 out : {2u, 4u, 6u, 16u}) {
      const Lut f = random_lut(rng, p / 2, out / 2, out);
      const Messages x = test::random_messages(rng, 7, p / 2);
      const Ciphertext y = w.ev.lut(w.client.encrypt(x, p), f);
      EXPECT_EQ(y.plain_modulus(), out);
      EXPECT_EQ(w.client.decrypt(y), test::map_messages(x, [&](u64 m) { return f.table[m]; }))
          << p << " to " << out;
    }
}

TEST_P(TfheLut, EveryPhaseReadsTheNearestEntry) {
  auto rng = test::test_rng();
  auto& w = world("padded:r3");  // q = 2^12, 2N = 2^10, p = 16
  const u32 log_q = 12, p = 16, q = 1u << log_q;
  const Lut f = random_lut(rng, p / 2, p / 2);
  std::vector<u32> phases;
  Messages expected;
  // From half a window below 0 to half a window below q / 2, save the phases whose rounding to 2N
  // steps lies on an edge.
  const u32 window = q / p, step = exhaustive() ? 1 : 37;
  for (u32 i = 0; i < q / 2; i += step) {
    const u32 inside = i % window;
    if (inside < 4 || inside >= window - 4) continue;
    phases.push_back((i - window / 2) & (q - 1));
    expected.push_back(f.table[i / window]);
  }
  const Ciphertext y = w.ev.lut(test::at_phases(w, phases, p, log_q), f);
  EXPECT_EQ(w.client.decrypt(y), expected);
  for (i64 e : w.client.phase_errors(y, expected)) EXPECT_EQ(e, 0);
}

TEST_P(TfheLut, TablesByIndex) {
  auto rng = test::test_rng();
  for (const char* name : names()) {
    auto& w = world(name);
    const u32 half = w.params().spec().plain_modulus / 2;
    std::vector<Lut> luts;
    for (int t = 0; t < 5; ++t) luts.push_back(random_lut(rng, half, half));
    const Messages x = test::random_messages(rng, exhaustive() ? 41 : 5, half);
    std::vector<u32> index;
    Messages expected;
    for (u64 m : x) {
      index.push_back(static_cast<u32>(rng() % luts.size()));
      expected.push_back(luts[index.back()].table[m]);
    }
    const Ciphertext a = w.client.encrypt(x);
    EXPECT_EQ(w.client.decrypt(w.ev.lut(a, luts, index)), expected) << name;
    const std::vector<u32> zeros(x.size(), 0);
    EXPECT_EQ(test::words_of(w.ev.lut(a, std::span(luts).first(1), zeros)),
              test::words_of(w.ev.lut(a, luts[0])));
  }
}

TEST_P(TfheLut, ResultsAreFitForFurtherTables) {
  auto rng = test::test_rng();
  auto& w = world("padded:r3");
  Messages x = test::random_messages(rng, 12, 8);
  Ciphertext c = w.client.encrypt(x);
  for (int t = 0; t < (exhaustive() ? 20 : 3); ++t) {
    const Lut f = random_lut(rng, 8, 8);
    c = w.ev.lut(c, f);
    x = test::map_messages(x, [&](u64 m) { return f.table[m]; });
  }
  EXPECT_EQ(w.client.decrypt(c), x);
}

TEST_P(TfheLut, LinearCombinations) {
  auto rng = test::test_rng();
  for (const char* name : {"padded:r3", "gadget"}) {
    auto& w = world(name);
    const u32 p = w.params().spec().plain_modulus;
    const Messages x = test::random_messages(rng, 10, 2), y = test::random_messages(rng, 10, 2);
    const Ciphertext a = w.client.encrypt(x), b = w.client.encrypt(y);
    for (const auto& [fa, fb, constant] : std::vector<std::tuple<i64, i64, i64>>{
             {1, 1, 0}, {2, -1, 1}, {-3, 2, -1}, {0, 1, i64(p) + 2}, {1, 0, -i64(p) * 7}}) {
      const Term terms[] = {{&a, fa}, {&b, fb}};
      Messages expected;
      for (u64 i = 0; i < x.size(); ++i)
        expected.push_back(
            static_cast<u64>(((fa * i64(x[i]) + fb * i64(y[i]) + constant) % i64(p) + i64(p))) % p);
      const Ciphertext sum = w.ev.linear(terms, constant);
      EXPECT_EQ(sum.plain_modulus(), p);
      EXPECT_EQ(w.client.decrypt(sum), expected) << name << " " << fa << " " << fb;
    }
    const Term twice[] = {{&a, 1}, {&a, 1}};  // one ciphertext twice is an honest sum here
    const Term doubled[] = {{&a, 2}};
    EXPECT_EQ(test::words_of(w.ev.linear(twice)), test::words_of(w.ev.linear(doubled)));
  }
}

TEST_P(TfheLut, LinearConstantsOfAnyModulus) {
  auto& w = world("gadget");
  const Ciphertext a = w.client.encrypt(Messages{0, 1, 5}, 6);
  const Term terms[] = {{&a, 1}};
  for (i64 constant : {i64(-13), i64(-6), i64(-1), i64(0), i64(7), i64(1) << 40}) {
    Messages expected;
    for (i64 m : {0, 1, 5}) expected.push_back(static_cast<u64>(((m + constant) % 6 + 6) % 6));
    EXPECT_EQ(w.client.decrypt(w.ev.linear(terms, constant)), expected) << constant;
  }
}

TEST_P(TfheLut, LinearReadsPhasesOnAnotherScale) {
  auto& w = world("gadget");
  const Ciphertext a = w.client.encrypt(Messages{0, 1, 2, 3});  // at q / 4
  const Term terms[] = {{&a, 1}};
  const Ciphertext wide = w.ev.linear(terms, 0, 8);
  EXPECT_EQ(wide.plain_modulus(), 8u);
  EXPECT_EQ(w.client.decrypt(wide), (Messages{0, 2, 4, 6}));
  const Ciphertext narrow = w.ev.linear(terms, 1, 2);
  EXPECT_EQ(test::words_of(narrow).size(), test::words_of(a).size());
  EXPECT_EQ(narrow.plain_modulus(), 2u);
}

TEST_P(TfheLut, TrivialCiphertextsCompute) {
  auto rng = test::test_rng();
  auto& w = world("padded:r3");
  const Messages x = test::random_messages(rng, 8, 8), y = test::random_messages(rng, 8, 8);
  const Ciphertext known = w.ev.trivial(x), secret = w.client.encrypt(y);
  EXPECT_EQ(w.client.decrypt(known), x);
  for (i64 e : w.client.phase_errors(known, x)) EXPECT_EQ(e, 0);
  const Term terms[] = {{&known, 1}, {&secret, 1}};
  Messages sum(8);
  for (u64 i = 0; i < 8; ++i) sum[i] = x[i] + y[i];
  EXPECT_EQ(w.client.decrypt(w.ev.linear(terms)), sum);
}

TEST(TfheTestPolynomial, ScalesExactly) {
  auto rng = test::test_rng();
  for (int i = 0; i < 1000; ++i) {
    const u64 modulus = 2 + rng() % (u64(1) << 55), y = 1 + rng() % 1000;
    const i64 x = i64(rng() % 2001) - 1000;
    const u64 got = scaled_to_modulus(x, y, modulus);
    ASSERT_LT(got, modulus);
    // y got = x modulus + an error of at most y / 2, modulo y modulus
    i128 error = (i128(y) * got - i128(x) * modulus) % (i128(y) * modulus);
    if (error > i128(y) * modulus / 2) error -= i128(y) * modulus;
    if (error < -(i128(y) * modulus / 2)) error += i128(y) * modulus;
    ASSERT_LE(error < 0 ? -error : error, i128(y) / 2);
  }
}

TEST_P(TfheLut, CacheStaysBounded) {
  auto& stream = world("padded:r3").context.stream();
  constexpr u64 kMaxBytes = 1 << 20, kWords = 512;
  constexpr std::size_t kMaxEntries = 64;
  DeviceCache cache(kMaxBytes, kMaxEntries);
  const auto make = [] { return std::vector<u64>(kWords, 7); };
  const ContentKey name("first");
  const auto first = cache.get(stream, name, make);
  EXPECT_EQ(first->bytes(), kWords * sizeof(u64));
  int made = 0;
  for (u64 i = 0; i < 700; ++i) {
    EXPECT_EQ(cache.get(stream, name, make), first);  // in use all the time
    cache.get(stream, ContentKey("key").add(i), [&] {
      ++made;
      return make();
    });
  }
  EXPECT_EQ(made, 700);
  EXPECT_GT(cache.bytes(), (kMaxEntries - 1) * kWords * sizeof(u64));
  EXPECT_LE(cache.bytes(), kMaxEntries * (kWords * sizeof(u64) + 16));
  for (u64 i = 0; i < 40; ++i)  // fewer, and large: the bytes are the bound
    cache.get(stream, ContentKey("large").add(i),
              [] { return std::vector<u64>(kMaxBytes / 8 / sizeof(u64), 7); });
  EXPECT_LE(cache.bytes(), kMaxBytes);
  EXPECT_GT(cache.bytes(), kMaxBytes / 2);
  const u64 before = cache.bytes();
  const auto huge =
      cache.get(stream, ContentKey("huge"), [] { return std::vector<u64>(kMaxBytes / 8 + 1, 7); });
  EXPECT_EQ(huge->bytes(), kMaxBytes + 8);  // served, not kept
  EXPECT_EQ(cache.bytes(), before);
  EXPECT_NE(cache.get(stream, name, make), first);  // had to go
  DeviceCache all;
  for (u64 i = 0; i < 700; ++i) all.get(stream, ContentKey("key").add(i), make);
  EXPECT_EQ(all.bytes(), 700 * (kWords * sizeof(u64) + 11));
}

// f(m) and f(m - p / 2) with one sum: any, odd ones as much as flags.
TEST_P(TfheLut, SignedTables) {
  auto rng = test::test_rng();
  for (const char* name : names()) {
    auto& w = world(name);
    const u32 p = w.params().spec().plain_modulus, half = p / 2;
    for (int t = 0; t < 4; ++t) {
      Lut f{Messages(p), 0};
      const u64 sum = rng() % p;
      for (u32 m = 0; m < half; ++m)
        f.table[m] = rng() % p, f.table[m + half] = (sum + p - f.table[m]) % p;
      Messages x(2 * half), y(2 * half);
      for (u64 i = 0; i < x.size(); ++i) x[i] = rng() % half, y[i] = rng() % half;
      // x - y is -(p/2 - 1)..p/2 - 1; padded messages are not encrypted below 0
      const Ciphertext a = w.client.encrypt(x), b = w.client.encrypt(y);
      const Term terms[] = {{&a, 1}, {&b, -1}};
      const Ciphertext found = w.ev.lut(w.ev.linear(terms), f);
      Messages expected;
      for (u64 i = 0; i < x.size(); ++i) expected.push_back(f.table[(x[i] + p - y[i]) % p]);
      EXPECT_EQ(w.client.decrypt(found), expected) << name;
      // beside tables of one half
      const Lut tables[] = {random_lut(rng, half, half), f};
      std::vector<u32> index;
      Messages mixed;
      for (u64 i = 0; i < x.size(); ++i) {
        index.push_back(static_cast<u32>(rng() % 2));
        mixed.push_back(tables[index[i]].table[x[i]]);
      }
      EXPECT_EQ(w.client.decrypt(w.ev.lut(a, tables, index)), mixed) << name;
    }
  }
}

TEST_P(TfheLut, SignedTablesThatNoRotationGivesAreRefused) {
  auto rng = test::test_rng();
  auto& w = world(names()[0]);
  const u32 p = w.params().spec().plain_modulus, half = p / 2;
  const Ciphertext a = w.client.encrypt(test::random_messages(rng, 3, half));
  Lut sign{Messages(p, 0), 0};  // -1, 0, 1: f(m - p / 2) = -f(m), and so f(-p / 2) = 0
  for (u32 m = 1; m < half; ++m) sign.table[m] = 1, sign.table[m + half] = p - 1;
  EXPECT_NO_THROW(w.ev.lut(a, sign));
  const auto message = [&](const Lut& f) -> std::string {
    try {
      w.ev.lut(a, f);
    } catch (const ParameterError& e) {
      return e.what();
    }
    return "";
  };
  Lut least = sign;
  least.table[half] = p - 1;
  EXPECT_NE(message(least).find(cat("the entries of 0 and -", half, " add up to ", p - 1)),
            std::string::npos)
      << message(least);
  Lut odd = sign;
  odd.table[2] = 3;
  EXPECT_NE(message(odd).find(cat("entries of 2 and -", half - 2)), std::string::npos);
  Lut large = sign;
  large.table[half + 1] = p;
  EXPECT_NE(message(large).find("too large"), std::string::npos);
  for (const u32 entries : {half - 1, half + 1, p - 1, p + 1, 2 * p})
    EXPECT_NE(message({Messages(entries, 0), 0}).find(cat("or ", p, " of a signed table")),
              std::string::npos);
}

CRENEL_DEVICE_SUITE(TfheLut);

}  // namespace
}  // namespace crenel::tfhe
