// Linear transforms against the product in the clear: shapes, offsets, plans, levels, keys, and the
// refusals.
#include "support/circuits.h"

namespace crenel::circuits {
namespace {

using ckks::Ciphertext;
using ckks::Evaluator;
using test::Complex;
using test::expect_error;
using test::Values;
using test::with;

LinearTransformOptions with_scale(double plain_scale, std::optional<u32> level = {},
                                  KeyMode keys = KeyMode::hoisted) {
  LinearTransformOptions o = with(keys, level);
  o.plain_scale = plain_scale;
  return o;
}

class LinearTransforms : public test::SchemeTest {
 protected:
  /// M v of a fresh ciphertext, with keys for exactly rotations().
  void expect_product(test::World& w, const DiagonalMatrix& m,
                      const LinearTransformOptions& options, test::Rng& rng, u32 batch = 1) {
    const LinearTransform t(w.context, m, options);
    expect_product(w, test::evaluator_with(w, t.rotations()), t, m, rng, batch);
  }
  void expect_product(test::World& w, const Evaluator& ev, const LinearTransform& t,
                      const DiagonalMatrix& m, test::Rng& rng, u32 batch = 1) {
    const Values v = test::random_values(rng, batch * m.slots);
    const Ciphertext in = w.client.encrypt(v, t.level(), 0.0, m.slots, batch);
    const auto before = test::bits(in);
    const Ciphertext out = t(ev, in);
    EXPECT_EQ(out.level() + 1, in.level());
    EXPECT_EQ(out.scale(), w.params().scale(out.level())) << "not the canonical scale";
    EXPECT_EQ(out.slots(), m.slots);
    EXPECT_EQ(out.batch(), batch);
    EXPECT_EQ(out.components(), 2u);
    EXPECT_LT(test::max_error(w.client.decrypt(out), test::apply(m, v)), bound(w, m));
    EXPECT_EQ(test::bits(in), before) << "the input has changed";
  }
  /// One operation's noise, more where rows are larger.
  static double bound(test::World& w, const DiagonalMatrix& m) {
    return test::tolerance(w.params(), 1.0 + test::row_norm(m) / 4.0);
  }
};

TEST_P(LinearTransforms, DenseMatricesOnEverySlotCount) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  for (u64 size : {u64(2), u64(3), u64(8), u64(21), u64(64)})
    for (u64 slots = std::bit_ceil(size); slots <= w.slots(); slots *= exhaustive() ? 2 : 1024) {
      SCOPED_TRACE(cat(size, " x ", size, " on ", slots, " slots"));
      expect_product(w, test::random_dense(rng, size, size, slots), {}, rng);
    }
}

TEST_P(LinearTransforms, RectanglesAndFullMatrices) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  expect_product(w, test::random_dense(rng, 3, 7, 8), {}, rng);
  expect_product(w, test::random_dense(rng, 1, 5, 16), {}, rng);
  expect_product(w, test::random_dense(rng, 5, 1, 512), {}, rng);
  expect_product(w, test::random_dense(rng, 1, 1, 1), {}, rng);
  // Every entry of the matrix, in its place.
  const DiagonalMatrix m = DiagonalMatrix::from_dense(Values{1, 2, 3, 4, 5, 6}, 2, 3, 4);
  const Values e = test::apply(m, Values{1, 10, 100, 1000});
  EXPECT_EQ(e, (Values{321, 654, 0, 0}));
  for (const auto& [k, diagonal] : m.diagonals)
    EXPECT_TRUE(std::any_of(diagonal.begin(), diagonal.end(), [](Complex x) { return x != 0.0; }))
        << "diagonal " << k << " is zero and could be left out";
}

TEST_P(LinearTransforms, SparseSetsOfDiagonals) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const u64 n = w.slots();
  const std::vector<std::vector<u64>> sets = {
      {0},                            // no rotation at all
      {1},                            // one diagonal, neither of them 0
      {n - 1},                        // -1
      {n / 2},                        // both ways the same
      {0, n - 7},                     // an odd step to the right
      {3, n - 5, n - 1},              // offset 0 is missing
      {0, n / 2},                     //
      {5, 6, 7, 300, 301, 777},       // gaps
      {0, 96, 192, n - 96, n - 192},  // a stride that is no power of two
      {1, 2, 4, 8, 16, 32, 64, 128},  //
      {100, 356, 612, 868},           // a coset
  };
  for (const auto& offsets : sets) {
    SCOPED_TRACE(testing::PrintToString(offsets));
    expect_product(w, test::random_diagonals(rng, n, offsets), {}, rng);
    if (exhaustive())
      expect_product(w, test::random_diagonals(rng, n, offsets), with(KeyMode::minimal), rng);
  }
  const u64 few[] = {0, 2, 13, 15};
  expect_product(w, test::random_diagonals(rng, 16, few), {}, rng);
}

TEST_P(LinearTransforms, EveryNumberOfBabySteps) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  std::vector<u64> offsets;
  for (u64 k = 0; k < 24; k += 1 + (k == 9)) offsets.push_back(k);
  const DiagonalMatrix m = test::random_diagonals(rng, 64, offsets);
  for (u64 baby_steps = 0; baby_steps <= 128; baby_steps = baby_steps ? 2 * baby_steps : 1) {
    SCOPED_TRACE(baby_steps);
    if (!exhaustive() && baby_steps != 4) continue;
    for (KeyMode keys : {KeyMode::hoisted, KeyMode::minimal}) {
      const LinearTransform t(w.context, m, with(keys, {}, baby_steps));
      if (baby_steps != 0) {
        EXPECT_LE(t.baby_steps(), baby_steps);
        EXPECT_LE(t.giant_steps(), (24 + baby_steps - 1) / baby_steps);
      }
      EXPECT_EQ(t.rotations(), linear_transform_rotations(offsets, 64, baby_steps, keys));
      EXPECT_TRUE(keys == KeyMode::hoisted || t.rotations().size() <= 2);
      expect_product(w, test::evaluator_with(w, t.rotations()), t, m, rng);
    }
  }
}

TEST(LinearTransformPlan, FewRotationsAscendingWithoutZero) {
  for (u64 count : {u64(2), u64(16), u64(63), u64(64), u64(256)}) {
    std::vector<u64> offsets(count);
    for (u64 k = 0; k < count; ++k) offsets[k] = k;
    const auto steps = linear_transform_rotations(offsets, 1024);
    EXPECT_LE(static_cast<double>(steps.size()), 2.5 * std::sqrt(count)) << count;
    EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
    EXPECT_EQ(std::count(steps.begin(), steps.end(), 0), 0);
    const auto fewest = linear_transform_rotations(offsets, 1024, 0, KeyMode::minimal);
    EXPECT_LE(fewest.size(), 2u);
  }
  const u64 zero[] = {0};
  EXPECT_TRUE(linear_transform_rotations(zero, 8).empty());
}

TEST_P(LinearTransforms, IdentityAndZero) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  for (u64 slots : {u64(1), u64(32), w.slots()}) {
    expect_product(w, {slots, {{0, Values(slots, 1.0)}}}, {}, rng);
    expect_product(w, {slots, {{0, Values(slots)}}}, {}, rng);
    expect_product(w, {slots, {{0, Values(slots)}, {slots / 2, Values(slots)}}}, {}, rng);
  }
  expect_product(w, DiagonalMatrix::from_dense(Values(9), 3, 3, 16), {}, rng);
}

TEST_P(LinearTransforms, HoistedAndMinimalAgree) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const DiagonalMatrix m = test::random_dense(rng, 32, 32, 32);
  const LinearTransform hoisted(w.context, m), minimal(w.context, m, with(KeyMode::minimal));
  const Values v = test::random_values(rng, 32);
  const Ciphertext in = w.client.encrypt(v, {}, 0.0, 32);
  const Ciphertext a = hoisted(test::evaluator_with(w, hoisted.rotations()), in);
  const Ciphertext b = minimal(test::evaluator_with(w, minimal.rotations()), in);
  EXPECT_EQ(a.level(), b.level());
  EXPECT_EQ(a.scale(), b.scale());
  EXPECT_LT(test::max_error(w.client.decrypt(a), w.client.decrypt(b)), bound(w, m));
}

TEST_P(LinearTransforms, Batches) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const u64 offsets[] = {0, 1, 2, 9, w.slots() - 1};
  for (KeyMode keys : {KeyMode::hoisted, KeyMode::minimal}) {
    if (!exhaustive() && keys == KeyMode::minimal) continue;
    expect_product(w, test::random_diagonals(rng, w.slots(), offsets), with(keys), rng, 3);
    expect_product(w, test::random_dense(rng, 5, 5, 8), with(keys), rng, 3);
  }
}

TEST_P(LinearTransforms, ABatchIsItsRowsBitForBit) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const DiagonalMatrix m = test::random_dense(rng, 6, 6, 8);
  const LinearTransform t(w.context, m);
  const Evaluator ev = test::evaluator_with(w, t.rotations());
  const Ciphertext both = w.client.encrypt(test::random_values(rng, 16), {}, 0.0, 8, 2);
  const auto out = test::bits(t(ev, both));
  for (u32 b = 0; b < 2; ++b) {
    Ciphertext one = both.clone();
    auto& poly = one.data().poly;
    rlwe::Poly row(poly.stream(), {poly.shape().log_n, 2, 1}, poly.limbs(), poly.domain());
    poly.stream().copy(row.data(), poly.view().rows(b, 1).data, row.bytes());
    poly = std::move(row);
    const auto alone = test::bits(t(ev, one));
    EXPECT_TRUE(
        std::equal(alone.begin(), alone.end(), out.begin() + static_cast<i64>(b * alone.size())))
        << "row " << b;
  }
}

TEST_P(LinearTransforms, LevelsOfEveryScale) {
  auto rng = test::test_rng();
  for (const char* name : every_scale()) {
    auto& w = world(name);
    const u32 top = w.params().normal_top_level();
    for (u32 level : {top, top / 2, 2u, 1u}) {
      SCOPED_TRACE(cat(name, " level ", level));
      expect_product(w, test::random_dense(rng, 8, 8, 8), with(KeyMode::hoisted, level), rng);
      if (exhaustive())
        expect_product(w, test::random_dense(rng, 8, 8, 256), with(KeyMode::minimal, level), rng);
    }
  }
  auto& w = world("s40");
  EXPECT_EQ(LinearTransform(w.context, test::random_dense(rng, 2, 2, 2)).level(),
            w.params().normal_top_level());
}

// Above the normal levels scales are the circuit's business: with plaintexts at the rescale ratio
// they stay what they are.
TEST_P(LinearTransforms, BootstrappingLevelsKeepTheScale) {
  if (!exhaustive()) GTEST_SKIP() << "keys of this size take too long";
  auto& w = world("toy-boot40");
  auto rng = test::test_rng();
  const auto& p = w.params();
  const DiagonalMatrix m = test::random_dense(rng, 8, 8, 32);
  for (u32 level = p.normal_top_level(); level <= p.max_level(); ++level) {
    SCOPED_TRACE(level);
    const double ratio = p.rescale_ratio(level);
    for (KeyMode keys : {KeyMode::hoisted, KeyMode::minimal}) {
      const LinearTransform t(w.context, m, with_scale(ratio, level, keys));
      const Values v = test::random_values(rng, 32);
      const double scale = 0x1p52;
      const Ciphertext out =
          t(test::evaluator_with(w, t.rotations()), w.client.encrypt(v, level, scale, 32));
      EXPECT_EQ(out.level(), level - 1);
      EXPECT_NEAR(out.scale() / scale, 1.0, 1e-12);
      EXPECT_LT(test::max_error(w.client.decrypt(out), test::apply(m, v)), bound(w, m) * 0x1p-10);
    }
  }
}

TEST_P(LinearTransforms, ScaleOfPlaintextsIsTheCallers) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const DiagonalMatrix m = test::random_dense(rng, 4, 4, 4);
  const u32 level = 5;
  const LinearTransform t(w.context, m, with_scale(0x1p45, level));
  const Values v = test::random_values(rng, 4);
  const Ciphertext in = w.client.encrypt(v, level, 0.0, 4);
  const Ciphertext out = t(test::evaluator_with(w, t.rotations()), in);
  EXPECT_NEAR(out.scale() / (in.scale() * 0x1p45 / w.params().rescale_ratio(level)), 1.0, 1e-12);
  EXPECT_LT(test::max_error(w.client.decrypt(out), test::apply(m, v)), bound(w, m));
}

TEST_P(LinearTransforms, PeriodicDiagonalsAreStoredOnce) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const u64 n = w.slots();
  const std::vector<u64> offsets{0, 1, 2, 3, 64, 65, 66, 67, n - 64, n - 63};
  for (KeyMode keys : {KeyMode::hoisted, KeyMode::minimal}) {
    const auto bytes = [&](u64 period) {
      const DiagonalMatrix m = test::random_diagonals(rng, n, offsets, period);
      const LinearTransform t(w.context, m, with(keys));
      if (exhaustive()) expect_product(w, test::evaluator_with(w, t.rotations()), t, m, rng);
      return t.plaintext_bytes();
    };
    const u64 full = bytes(0);
    EXPECT_EQ(bytes(n), full);
    // A vector of 16 values repeated is a polynomial of 32 coefficients, one of N/2 has N.
    EXPECT_EQ(bytes(16) * (n / 16), full);
    EXPECT_EQ(bytes(1) * n, full);
    EXPECT_GE(full, offsets.size() * w.params().ring_dim() * sizeof(u32) *
                        (w.params().window_end(w.params().normal_top_level()) -
                         w.params().window_begin(w.params().normal_top_level())));
  }
  // Few slots are a period as well.
  const LinearTransform few(w.context, test::random_dense(rng, 16, 16, 16));
  const LinearTransform padded(w.context, test::random_dense(rng, 16, 16, n));
  EXPECT_LT(few.plaintext_bytes() * 32, padded.plaintext_bytes());
}

TEST_P(LinearTransforms, RealSlots) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const auto v = test::random_reals(rng, 16);
  const Ciphertext in = w.client.encrypt(v, {}, 0.0, 16);
  ASSERT_TRUE(in.metadata().real);
  const DiagonalMatrix m = test::random_dense(rng, 16, 16, 16);
  const LinearTransform t(w.context, m);
  const Ciphertext out = t(test::evaluator_with(w, t.rotations()), in);
  EXPECT_FALSE(out.metadata().real) << "the imaginary part would be dropped at decryption";
  EXPECT_LT(test::max_error(w.client.decrypt(out), test::apply(m, Values(v.begin(), v.end()))),
            bound(w, m));
  const auto entries = test::random_reals(rng, 16);
  const DiagonalMatrix real =
      DiagonalMatrix::from_dense(Values(entries.begin(), entries.end()), 4, 4, 16);
  const LinearTransform r(w.context, real);
  const Ciphertext product = r(test::evaluator_with(w, r.rotations()), in);
  EXPECT_TRUE(product.metadata().real) << "a real matrix times a real vector";
  EXPECT_LT(
      test::max_error(w.client.decrypt(product), test::apply(real, Values(v.begin(), v.end()))),
      bound(w, real));
}

TEST_P(LinearTransforms, TheBoundNeedsNoTransform) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const ckks::ErrorModel model(w.params());
  for (bool real : {true, false}) {
    const auto v = test::random_reals(rng, 16);
    DiagonalMatrix m = test::random_dense(rng, 9, 16, 16);
    if (real)
      for (auto& [offset, values] : m.diagonals)
        for (auto& x : values) x = x.real();
    const LinearTransform t(w.context, m);
    const ckks::ErrorBound in = model.input(1.0, true, {}, 0.0, 16);
    const ckks::ErrorBound prepared = t(model, in), alone = linear_transform_bound(model, m, in);
    EXPECT_EQ(prepared.rms, alone.rms);
    EXPECT_EQ(prepared.max, alone.max);
    EXPECT_EQ(prepared.message, alone.message);
    EXPECT_EQ(prepared.scale(), alone.scale());
    EXPECT_EQ(alone.meta.real, real);
    const Ciphertext out =
        t(test::evaluator_with(w, t.rotations()), w.client.encrypt(v, {}, 0.0, 16));
    EXPECT_EQ(out.metadata().real, real);
    EXPECT_LT(test::max_error(w.client.decrypt(out), test::apply(m, Values(v.begin(), v.end()))),
              alone.max);
    ckks::ErrorBound low = in;
    low.meta.level = 0;
    EXPECT_THROW(linear_transform_bound(model, m, low), ParameterError);
  }
}

TEST_P(LinearTransforms, Linear) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const DiagonalMatrix m = test::random_dense(rng, 32, 32, 32);
  const LinearTransform t(w.context, m);
  const Evaluator ev = test::evaluator_with(w, t.rotations());
  const Ciphertext x = w.client.encrypt(test::random_values(rng, 32), {}, 0.0, 32);
  const Ciphertext y = w.client.encrypt(test::random_values(rng, 32), {}, 0.0, 32);
  const Ciphertext whole = t(ev, ev.sub(ev.multiply_integer(x, 3, -1), y));
  const Ciphertext parts = ev.sub(ev.multiply_integer(t(ev, x), 3, -1), t(ev, y));
  EXPECT_LT(test::max_error(w.client.decrypt(whole), w.client.decrypt(parts)), 4 * bound(w, m));
}

TEST_P(LinearTransforms, CompositionIsTheProduct) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  Values a = test::random_values(rng, 256), b = test::random_values(rng, 256), ab(256);
  for (u64 i = 0; i < 16; ++i)
    for (u64 j = 0; j < 16; ++j)
      for (u64 k = 0; k < 16; ++k) ab[16 * i + j] += a[16 * i + k] * b[16 * k + j];
  const u32 top = w.params().normal_top_level();
  const auto dense = [](const Values& x) { return DiagonalMatrix::from_dense(x, 16, 16, 16); };
  const LinearTransform first(w.context, dense(b), with(KeyMode::hoisted, top)),
      second(w.context, dense(a), with(KeyMode::hoisted, top - 1)),
      both(w.context, dense(ab), with(KeyMode::hoisted, top));
  const Evaluator ev = test::evaluator_with(w, both.rotations());
  const Values v = test::random_values(rng, 16);
  const Ciphertext in = w.client.encrypt(v, {}, 0.0, 16);
  const Values expected = test::apply(dense(ab), v);
  EXPECT_LT(test::max_error(w.client.decrypt(second(ev, first(ev, in))), expected),
            test::tolerance(w.params(), 16));
  EXPECT_LT(test::max_error(w.client.decrypt(both(ev, in)), expected),
            test::tolerance(w.params(), 16));
}

TEST_P(LinearTransforms, SameBitsOnEveryDeviceAndRun) {
  if (!exhaustive()) GTEST_SKIP() << "this is what the others are compared with";
  auto& w = world("s40");
  auto rng = test::test_rng();
  const u64 offsets[] = {1, 2, 3, 4, 17, 18, 40, 500};
  const DiagonalMatrix m = test::random_diagonals(rng, w.slots(), offsets);
  for (KeyMode keys : {KeyMode::hoisted, KeyMode::minimal}) {
    const LinearTransform t(w.context, m, with(keys));
    const auto rotation_keys = w.client.evaluation_keys({t.rotations(), false, false});
    const Ciphertext in = w.client.encrypt(test::random_values(rng, 2 * w.slots()), {}, 0.0, 0, 2);
    const auto out = test::bits(t(w.context.evaluator(rotation_keys), in));
    EXPECT_EQ(test::bits(t(w.context.evaluator(rotation_keys), in)), out);
    const ckks::Context ref(w.params(), "ref");
    const LinearTransform again(ref, m, with(keys));
    const Evaluator ev = ref.evaluator(
        ckks::evaluation_keys_from_bytes(ref, ckks::to_bytes(w.context, rotation_keys)));
    EXPECT_EQ(
        test::bits(again(ev, ckks::ciphertext_from_bytes(ref, ckks::to_bytes(w.context, in)))),
        out);
  }
}

TEST_P(LinearTransforms, MovesAndServesAnyEvaluator) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const DiagonalMatrix a = test::random_dense(rng, 4, 4, 8), b = test::random_dense(rng, 3, 3, 8);
  LinearTransform t(w.context, a);
  const Evaluator ev = test::evaluator_with(w, t.rotations());
  LinearTransform moved(std::move(t));
  expect_product(w, ev, moved, a, rng);
  moved = LinearTransform(w.context, b);
  expect_product(w, test::evaluator_with(w, moved.rotations()), moved, b, rng);
  // A key that moves sparse vectors as far as the one asked for will do.
  std::vector<i64> equivalent;
  for (i64 k : moved.rotations()) equivalent.push_back(k - 8);
  expect_product(w, test::evaluator_with(w, equivalent), moved, b, rng);
}

TEST_P(LinearTransforms, EveryMissingKeyIsNamedAtOnce) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  for (KeyMode keys : {KeyMode::hoisted, KeyMode::minimal}) {
    const LinearTransform t(w.context, test::random_dense(rng, 64, 64, 64), with(keys));
    ASSERT_GE(t.rotations().size(), 2u);
    std::multiset<std::string> all, some;
    for (i64 k : t.rotations()) all.insert(cat(k));
    some = all;
    some.erase(some.find(cat(t.rotations()[0])));
    const Ciphertext in = w.client.encrypt(Values(64, 1.0), {}, 0.0, 64);
    const auto none = expect_error<KeyMissingError>([&] { t(w.context.evaluator({}), in); });
    EXPECT_EQ(test::names_in(none), all) << none.what();
    for (const auto& name : all) EXPECT_NE(std::string(none.what()).find(name), std::string::npos);
    const Evaluator first = test::evaluator_with(w, {t.rotations()[0]});
    const auto others = expect_error<KeyMissingError>([&] { t(first, in); });
    EXPECT_EQ(test::names_in(others), some) << others.what();
  }
}

TEST_P(LinearTransforms, RefusesInputsOfAnotherKind) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const LinearTransform t(w.context, test::random_dense(rng, 4, 4, 8), with(KeyMode::hoisted, 5));
  const Evaluator ev = w.context.evaluator(w.client.evaluation_keys({t.rotations(), false, true}));
  const auto refused = [&](const Ciphertext& in) {
    return expect_error<StateError>([&] { t(ev, in); });
  };
  const auto level = refused(w.client.encrypt(Values(8, 1.0), 4u, 0.0, 8));
  EXPECT_EQ(level.field("level"), "4");
  EXPECT_EQ(level.field("expected"), "5");
  const auto slots = refused(w.client.encrypt(Values(8, 1.0), 5u, 0.0, 16));
  EXPECT_EQ(slots.field("slots"), "16");
  EXPECT_EQ(slots.field("expected"), "8");
  const Ciphertext good = w.client.encrypt(Values(8, 1.0), 5u, 0.0, 8);
  EXPECT_EQ(refused(ev.square_lazy(good)).field("components"), "3");
  auto& other = world("s35");
  const auto context = refused(other.client.encrypt(Values(8, 1.0), 5u, 0.0, 8));
  EXPECT_NE(context.field("found"), "") << context.what();
  const auto foreign = expect_error<StateError>([&] {
    t(test::evaluator_with(other, t.rotations()), other.client.encrypt(Values(8, 1.0), 5u, 0.0, 8));
  });
  EXPECT_NE(foreign.field("found"), "") << foreign.what();
}

TEST_P(LinearTransforms, RefusesMatrices) {
  auto& w = world("s40");
  const u64 n = w.slots();
  const auto refused = [&](const DiagonalMatrix& m, const LinearTransformOptions& options = {}) {
    return expect_error<ParameterError>([&] { LinearTransform(w.context, m, options); });
  };
  const auto one = [](u64 slots, u64 offset = 0) {
    return DiagonalMatrix{slots, {{offset, Values(slots, 1.0)}}};
  };
  EXPECT_EQ(refused(one(2 * n)).field("slots"), cat(2 * n));
  EXPECT_EQ(refused(one(2 * n)).field("max_slots"), cat(n));
  EXPECT_EQ(refused(one(12)).field("slots"), "12");
  EXPECT_EQ(refused({0, {}}).field("slots"), "0");
  EXPECT_EQ(refused({8, {}}).field("count"), "0");
  EXPECT_EQ(refused(one(8, 8)).field("offset"), "8");
  EXPECT_EQ(refused(one(8, u64(-1))).field("offset"), cat(u64(-1)));
  const auto size = refused({8, {{0, Values(8, 1.0)}, {3, Values(7, 1.0)}}});
  EXPECT_EQ(size.field("values"), "7");
  EXPECT_EQ(size.field("slots"), "8");
  for (double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    DiagonalMatrix m = one(8, 5);
    m.diagonals[5][7] = {0.0, bad};
    EXPECT_EQ(refused(m).field("offset"), "5");
  }
  DiagonalMatrix large = one(8);
  large.diagonals[0][0] = 1e30;
  EXPECT_NE(refused(large).field("log2_bound"), "");
  EXPECT_EQ(refused(one(8), with(KeyMode::hoisted, 0)).field("level"), "0");
  EXPECT_EQ(refused(one(8), with(KeyMode::hoisted, 9)).field("level"), "9");
  EXPECT_EQ(refused(one(8), with(KeyMode::hoisted, u32(-1))).field("max_level"), "8");
  for (double scale : {-1.0, 0.5, std::numeric_limits<double>::quiet_NaN(),
                       std::numeric_limits<double>::infinity()})
    EXPECT_NE(refused(one(8), with_scale(scale)).field("scale"), "") << scale;
  EXPECT_EQ(refused(one(8), with(KeyMode::hoisted, {}, 3)).field("baby_steps"), "3");
}

TEST_P(LinearTransforms, SurvivesAnyNumberOfBabySteps) {
  // Powers of two whose product with the stride does not fit in 64 bits.
  auto& w = world("s40");
  const DiagonalMatrix strided{8, {{2, Values(8, 1.0)}, {4, Values(8, 1.0)}}};
  for (u64 baby_steps : {u64(1) << 61, u64(1) << 62, u64(1) << 63}) {
    try {
      const LinearTransform t(w.context, strided, with(KeyMode::hoisted, {}, baby_steps));
      EXPECT_EQ(t.giant_steps(), 1u);
    } catch (const ParameterError& e) {
      EXPECT_EQ(e.field("baby_steps"), cat(baby_steps));
    }
  }
}

TEST(LinearTransformPlan, RefusesDenseMatricesThatDoNotFit) {
  const auto refused = [](u64 values, u64 rows, u64 columns, u64 slots) {
    return expect_error<ParameterError>(
        [&] { DiagonalMatrix::from_dense(Values(values, 1.0), rows, columns, slots); });
  };
  EXPECT_EQ(refused(5, 2, 3, 8).field("expected"), "6");
  EXPECT_EQ(refused(0, 0, 0, 8).field("values"), "0");
  EXPECT_EQ(refused(18, 9, 2, 8).field("rows"), "9");
  EXPECT_EQ(refused(18, 2, 9, 8).field("columns"), "9");
  EXPECT_EQ(refused(18, 2, 9, 8).field("slots"), "8");
  // rows * columns is 0 modulo 2^64.
  EXPECT_NE(refused(0, u64(1) << 32, u64(1) << 32, 8).field("rows"), "");
}

TEST_P(LinearTransforms, BoundsGrowByTheLargestRow) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const u64 slots = 64;
  const DiagonalMatrix m = test::random_dense(rng, 17, 17, slots);
  for (KeyMode keys : {KeyMode::hoisted, KeyMode::minimal}) {
    const LinearTransform t(w.context, m, with(keys, 1));
    const Evaluator ev = test::evaluator_with(w, t.rotations());
    const double norm = test::row_norm(m), most = w.params().max_value(0);
    const Values v = test::random_values(rng, slots, 0.7);
    const auto encrypt = [&](double bound) { return w.client.encrypt(v, 1, 0.0, slots, 1, bound); };
    const Ciphertext out = t(ev, encrypt(1.0));
    EXPECT_NEAR(out.bound() / norm, 1.0, 1e-12);
    for (const Complex& x : w.client.decrypt(out)) EXPECT_LE(std::abs(x), out.bound() + 1e-4);
    EXPECT_LE(t(ev, encrypt(most / norm * (1.0 - 1e-6))).bound(), most);
    const auto e = expect_error<StateError>([&] { t(ev, encrypt(most / norm * (1.0 + 1e-6))); });
    EXPECT_EQ(e.field("operation"), "linear transform");
    EXPECT_EQ(e.field("level"), "1");
    EXPECT_EQ(t(ev, w.client.encrypt(v, 1, 0.0, slots)).bound(), ckks::kUnknownBound);
  }
}

TEST_P(LinearTransforms, ACheckedEvaluatorKnowsTheProduct) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  for (u64 slots : {u64(64), w.slots()})
    for (KeyMode keys : {KeyMode::hoisted, KeyMode::minimal}) {
      const u64 size = 13;
      DiagonalMatrix m = test::random_dense(rng, size, size, slots);
      m.diagonals[slots / 2] = Values(slots, 0.5);  // with a short period
      const LinearTransform t(w.context, m, with(keys, 1, 4));
      const Evaluator ev = test::evaluator_with(w, t.rotations());
      const Evaluator checked = ev.checked(w.client);
      const Ciphertext v = w.client.encrypt(test::random_values(rng, 2 * slots), 1, 0.0, slots, 2);
      EXPECT_EQ(test::bits(t(checked, v)), test::bits(t(ev, v)));
      // A constant is one coefficient: the result leaves the range.
      const Ciphertext large =
          w.client.encrypt(Values(slots, 1.9 * w.params().max_value(0)), 1, 0.0, slots);
      DiagonalMatrix all{slots, {}};
      all.diagonals[0] = Values(slots, 0.6);
      const LinearTransform half(w.context, all, with(keys, 1));
      const auto e = expect_error<StateError>([&] { half(checked, large); });
      EXPECT_EQ(e.field("operation"), "linear transform");
      EXPECT_EQ(e.field("level"), "0");
      EXPECT_NEAR(std::stod(e.field("factor")), 1.14, 0.01);
    }
}

CRENEL_FAST_DEVICE_SUITE(LinearTransforms);

}  // namespace
}  // namespace crenel::circuits
