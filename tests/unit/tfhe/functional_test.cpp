// EvalFunc, EvalFloor, EvalSign and EvalDecomp of OpenFHE: all messages, all phases, large
// precision.
#include "support/tfhe_world.h"

namespace crenel::tfhe {
namespace {

using test::Messages;

class TfheFunctional : public test::TfheTest {
 protected:
  static Messages all_messages(u32 p) {
    Messages x(p);
    for (u32 m = 0; m < p; ++m) x[m] = m;
    return x;
  }
  static Messages applied(const Lut& f, const Messages& x) {
    return test::map_messages(x, [&](u64 m) { return f.table[m]; });
  }
  /// Random values modulo `out` with f(m + p/2) = sign f(m), or any where sign = 0.
  static Lut table(test::Rng& rng, u32 p, u32 out, int sign) {
    Lut f{test::random_messages(rng, p, out), out};
    for (u32 m = 0; m < p / 2 && sign != 0; ++m)
      f.table[m + p / 2] = sign > 0 ? f.table[m] : (out - f.table[m]) % out;
    return f;
  }
  std::vector<const char*> function_sets() const {
    if (!exhaustive()) return {"func:r3"};
    return {"func", "func:approx:r3", "func:binary:r5", "sparse:approx", "sparse:binary:r2"};
  }
};

TEST_P(TfheFunctional, NegacyclicPeriodicAndArbitraryTables) {
  auto rng = test::test_rng();
  for (const char* name : function_sets()) {
    auto& w = world(name);
    for (u32 p : {2u, 4u, 8u}) {
      const Messages x = all_messages(p);
      for (int sign : {-1, 1, 0})
        for (u32 out : {4u, 6u, 8u}) {
          const Lut f = table(rng, p, out, sign);
          const Ciphertext y = w.ev.lut(w.client.encrypt(x, p), f);
          EXPECT_EQ(y.plain_modulus(), out);
          EXPECT_EQ(w.client.decrypt(y), applied(f, x))
              << name << " p " << p << " out " << out << " symmetry " << sign;
        }
    }
  }
}

TEST_P(TfheFunctional, EveryPhaseReadsTheNearestMessage) {
  auto rng = test::test_rng();
  auto& w = world("func:r3");  // q = 2^9
  const u32 p = 8, log_q = 9, q = 1u << log_q, window = q / p;
  std::vector<u32> phases;
  Messages nearest;
  const u32 step = exhaustive() ? 1 : 19;
  // The middle of the window: the first bootstrap of two adds noise of about one unit.
  for (u32 i = 0; i < q; i += step) {
    if (i % window < 10 || i % window >= window - 10) continue;
    phases.push_back((i - window / 2) & (q - 1));
    nearest.push_back(i / window);
  }
  for (int sign : {-1, 1, 0}) {
    const Lut f = table(rng, p, p, sign);
    EXPECT_EQ(w.client.decrypt(w.ev.lut(test::at_phases(w, phases, p, log_q), f)),
              applied(f, nearest))
        << sign;
  }
}

TEST_P(TfheFunctional, TablesByIndexTakeTheirCommonSymmetry) {
  auto rng = test::test_rng();
  auto& w = world("func:r3");
  const Messages x = all_messages(8);
  for (int kind = 0; kind < 3; ++kind) {
    // negacyclic ones; periodic ones; one of each
    std::vector<Lut> luts{table(rng, 8, 8, kind == 0 ? -1 : 1),
                          table(rng, 8, 8, kind == 1 ? 1 : -1)};
    std::vector<u32> index;
    Messages expected;
    for (u64 m : x) {
      index.push_back(u32(rng() % 2));
      expected.push_back(luts[index.back()].table[m]);
    }
    EXPECT_EQ(w.client.decrypt(w.ev.lut(w.client.encrypt(x), luts, index)), expected) << kind;
  }
}

TEST_P(TfheFunctional, ArbitraryTablesNeedRoomForTwiceQ) {
  auto rng = test::test_rng();
  auto& w = world("gadget:r3");  // q = 2N
  const Ciphertext a = w.client.encrypt(Messages{0, 1, 2, 3});
  Lut f = {{0, 1, 3, 2}, 4};
  try {
    w.ev.lut(a, f);
    FAIL() << "q = 2N holds no doubled modulus";
  } catch (const UnsupportedError& e) {
    EXPECT_EQ(e.field("q"), "1024");
    EXPECT_EQ(e.field("N"), "512");
  }
  f = table(rng, 4, 4, 1);
  EXPECT_EQ(w.client.decrypt(w.ev.lut(a, f)), applied(f, {0, 1, 2, 3}));
}

TEST_P(TfheFunctional, SignFloorAndDigitsOfEveryMessage) {
  const std::vector<const char*> sets =
      exhaustive() ? std::vector<const char*>{"large", "large:r3", "gadget:approx:r3", "raising"}
                   : std::vector<const char*>{"large:r3"};
  for (const char* name : sets) {
    auto& w = world(name);
    for (u32 p : {2u, 4u, 8u, 16u, 32u}) {
      if (!exhaustive() && p != 8 && p != 16) continue;
      const Messages x = all_messages(p);
      const Ciphertext a = w.client.encrypt(x, p);
      const Ciphertext sign = w.ev.sign(a);
      EXPECT_EQ(sign.plain_modulus(), 4u);
      EXPECT_EQ(w.client.decrypt(sign), test::map_messages(x, [&](u64 m) { return m >= p / 2; }))
          << name << " p " << p;
      // q / 2 beta = p0 = 4 messages a bootstrap, 8 for p = 8, which stands modulo q as well.
      const u32 readable = p == 8 ? 3 : p == 2 ? 1 : 2;
      for (u32 bits = 1; (1u << bits) < p && bits <= readable; ++bits) {
        const Ciphertext low = w.ev.floor(a, bits);
        EXPECT_EQ(low.plain_modulus(), p);
        EXPECT_EQ(w.client.decrypt(low),
                  test::map_messages(x, [&](u64 m) { return m >> bits << bits; }))
            << name << " p " << p << " bits " << bits;
      }
      for (u32 bits = 1; bits <= readable; ++bits) {
        Messages sum(p, 0);
        u64 weight = 1;
        const auto digits = w.ev.decompose(a, bits);
        EXPECT_EQ(digits.size(), (floor_log2(p) + bits - 1) / bits);
        for (const Ciphertext& digit : digits) {
          const auto values = w.client.decrypt(digit);
          EXPECT_LE(digit.plain_modulus(), 1u << bits);
          for (u32 m = 0; m < p; ++m) sum[m] += weight * values[m];
          weight *= digit.plain_modulus();
        }
        EXPECT_EQ(weight, p);
        EXPECT_EQ(sum, x) << name << " p " << p << " base 2^" << bits;
      }
    }
  }
}

void expect_large_precision(test::TfheWorld& w, std::initializer_list<u32> logs, u64 count) {
  auto rng = test::test_rng();
  for (const u32 log_p : logs) {
    const u64 p = u64(1) << log_p;
    Messages x = test::random_messages(rng, count, p);
    for (u64 m : {u64(0), u64(1), p / 2 - 1, p / 2, p / 2 + 1, p - 1}) x.push_back(m);
    const Ciphertext a = w.client.encrypt(x, u32(p));
    EXPECT_EQ(w.client.decrypt(a), x);
    EXPECT_EQ(w.client.decrypt(w.ev.sign(a)),
              test::map_messages(x, [&](u64 m) { return m >= p / 2; }))
        << log_p;
    EXPECT_EQ(w.client.decrypt(w.ev.floor(a, 2)),
              test::map_messages(x, [](u64 m) { return m / 4 * 4; }))
        << log_p;
    Messages sum(x.size(), 0);
    u64 weight = 1;
    for (const Ciphertext& digit : w.ev.decompose(a, 2)) {
      const auto values = w.client.decrypt(digit);
      for (u64 i = 0; i < x.size(); ++i) sum[i] += weight * values[i];
      weight *= 4;
    }
    EXPECT_EQ(sum, x) << log_p;
  }
}

TEST_P(TfheFunctional, LargePrecision) {
  if (exhaustive())
    expect_large_precision(world("large:r3"), {10, 16, 20}, 40);
  else
    expect_large_precision(world("large:r3"), {10}, 5);
}

// Three digits in two pieces each; one digit as wide as that of G4, whose noise leaves 16 bits.
TEST_P(TfheFunctional, LargePrecisionBySplitDigits) {
  if (exhaustive()) {
    expect_large_precision(world("large:split:r3"), {10, 20}, 20);
    expect_large_precision(world("broad:split"), {16}, 20);
  } else {
    expect_large_precision(world("large:split"), {10}, 5);
  }
}

TEST_P(TfheFunctional, FloorTakesTheErrorOffToo) {
  // Phases far from their message's place, within beta: floor leaves its own noise only.
  auto& w = world("large");
  const u32 p = exhaustive() ? 32 : 16, log_m = exhaustive() ? 13 : 12, beta = 128;
  std::vector<u32> phases;
  Messages expected;
  for (u32 m = 0; m < p; ++m)
    for (i32 e : {-100, -31, 0, 77, 100}) {
      phases.push_back(u32(i32(2 * beta * m) + e) & ((1u << log_m) - 1));
      expected.push_back(m / 4 * 4);
    }
  const Ciphertext a = test::at_phases(w, phases, p, log_m);
  const Ciphertext low = w.ev.floor(a, 2);
  EXPECT_EQ(w.client.decrypt(low), expected);
  for (i64 e : w.client.phase_errors(low, expected)) EXPECT_LE(std::abs(e), 25) << e;
}

TEST_P(TfheFunctional, ComparesLargeNumbersBySign) {
  auto rng = test::test_rng();
  auto& w = world("large:r3");
  const u32 p = 1u << 12;
  const Messages x = test::random_messages(rng, 12, p / 2),
                 y = test::random_messages(rng, 12, p / 2);
  const Ciphertext a = w.client.encrypt(x, p), b = w.client.encrypt(y, p);
  const Term difference[] = {{&a, 1}, {&b, -1}};
  Messages less(12), larger(12);
  for (u64 i = 0; i < 12; ++i) less[i] = x[i] < y[i], larger[i] = 1 - less[i];
  const Ciphertext is_less = w.ev.sign(w.ev.linear(difference));
  EXPECT_EQ(w.client.decrypt(is_less), less);
  EXPECT_EQ(w.client.decrypt(w.ev.not_(is_less)), larger);  // fit for gates
}

TEST_P(TfheFunctional, RefusesWhatOneBootstrapCannotRead) {
  auto& w = world("large:r3");
  const Ciphertext a = w.client.encrypt(Messages{1, 2, 3}, 64);
  EXPECT_THROW(w.ev.floor(a, 0), ParameterError);
  EXPECT_THROW(w.ev.floor(a, 6), ParameterError);
  EXPECT_THROW(w.ev.floor(a, 3), UnsupportedError);
  EXPECT_THROW(w.ev.decompose(a, 0), ParameterError);
  EXPECT_THROW(w.ev.decompose(a, 3), UnsupportedError);
  const Ciphertext six = w.client.encrypt(Messages{1, 2, 3}, 6);
  EXPECT_THROW(w.ev.sign(six), ParameterError);
  EXPECT_THROW(w.ev.floor(six, 1), ParameterError);
  EXPECT_THROW(w.ev.decompose(six, 1), ParameterError);
}

TEST_P(TfheFunctional, RefusesModuliWithoutRoomForTheNoise) {
  auto& small = world("raising");  // Q_KS = 2^17; no encryption reaches beyond it
  const Ciphertext beyond = test::at_phases(small, {256}, 1u << 12, 20);
  try {
    small.ev.sign(beyond);
    FAIL();
  } catch (const UnsupportedError& e) {
    EXPECT_EQ(e.field("log_modulus"), "20");
    EXPECT_EQ(e.field("log_switch_modulus"), "17");
  }
  const Ciphertext noisy = small.client.encrypt(Messages{1}, 1u << 9);  // modulo 2^17
  try {
    small.ev.floor(noisy, 1);
    FAIL();
  } catch (const UnsupportedError& e) {
    EXPECT_EQ(e.field("beta"), "128");
    EXPECT_FALSE(e.field("std").empty());
  }
}

CRENEL_FAST_DEVICE_SUITE(TfheFunctional);

}  // namespace
}  // namespace crenel::tfhe
