// Rotations, conjugation, hoisting, sums over slots, and key switching at every level.
#include "ckks/evaluator_state.h"
#include "crenel/ckks/error_model.h"
#include "crenel/ckks/operand.h"
#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using test::Complex;
using test::Values;

class CkksRotation : public test::SchemeTest {
 protected:
  void expect_values(test::World& w, const Ciphertext& c, const Values& expected,
                     double operations = 1.0) {
    EXPECT_LT(test::max_error(w.client.decrypt(c), expected),
              test::tolerance(w.params(), operations));
  }
};

TEST_P(CkksRotation, EveryKeyBothWaysAndWrappedAround) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots());
  const Ciphertext a = w.client.encrypt(x);
  const i64 n = static_cast<i64>(w.slots());
  for (i64 steps : test::world_rotations()) {
    if (!exhaustive() && std::abs(steps) > 3) continue;
    SCOPED_TRACE(steps);
    for (i64 same : {steps, steps + n, steps - n, steps - 3 * n}) {
      const Ciphertext r = w.ev.rotate(a, same);
      EXPECT_EQ(r.level(), a.level());
      EXPECT_EQ(r.scale(), a.scale());
      expect_values(w, r, test::rolled(x, steps));
    }
  }
  // No key is needed where nothing moves.
  for (i64 same : {i64(0), n, -n, 5 * n})
    EXPECT_EQ(w.client.decrypt(w.context.evaluator({}).rotate(a, same)), w.client.decrypt(a));
}

TEST_P(CkksRotation, EveryLevelWithTheTopLevelKeys) {
  auto& w = world("toy-boot40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots());
  for (u32 level = 0; level <= w.params().max_level(); level += exhaustive() ? 1 : 7) {
    SCOPED_TRACE(level);
    const Ciphertext a = w.client.encrypt(x, level);
    expect_values(w, w.ev.rotate(a, 3), test::rolled(x, 3));
    expect_values(w, w.ev.rotate(a, -7), test::rolled(x, -7));
    expect_values(w, w.ev.conjugate(a),
                  test::map_values(x, [](Complex v) { return std::conj(v); }));
    const i64 steps[] = {0, 1, -1};
    const auto r1 = test::rolled(x, 1), r2 = test::rolled(x, -1);
    Values sum = x;
    for (u64 i = 0; i < sum.size(); ++i) sum[i] += r1[i] + r2[i];
    expect_values(w, w.ev.rotate_sum(a, steps), sum, 3.0);
    // Relinearisation switches keys as well; it needs room for the doubled scale.
    if (w.params().log_q(level) > 84)
      expect_values(w, w.ev.square(a), test::map_values(x, [](Complex v) { return v * v; }));
  }
}

TEST_P(CkksRotation, SparseVectorsUseAnyEquivalentKey) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  for (u64 slots : {u64(1), u64(2), u64(16), u64(256)}) {
    const Values x = test::random_values(rng, slots);
    const Ciphertext a = w.client.encrypt(x, {}, 0.0, slots);
    for (i64 steps : {i64(0), i64(1), i64(2), i64(-1), i64(-3), static_cast<i64>(slots) + 1,
                      static_cast<i64>(slots)}) {
      SCOPED_TRACE(std::to_string(slots) + " slots by " + std::to_string(steps));
      const Ciphertext r = w.ev.rotate(a, steps);
      EXPECT_EQ(r.slots(), slots);
      expect_values(w, r, test::rolled(x, steps));
    }
    expect_values(w, w.ev.conjugate(a),
                  test::map_values(x, [](Complex v) { return std::conj(v); }));
  }
  // A key for -1 of the full vector is one for slots - 1 of a sparse one.
  const Evaluator only = w.context.evaluator(w.client.evaluation_keys({{-1}, false, false}));
  const Values x = test::random_values(rng, 8);
  const Ciphertext a = w.client.encrypt(x, {}, 0.0, 8);
  expect_values(w, only.rotate(a, 7), test::rolled(x, -1));
  EXPECT_THROW(only.rotate(a, 1), KeyMissingError);
}

TEST_P(CkksRotation, CompositionsAgree) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots());
  const Ciphertext a = w.client.encrypt(x);
  expect_values(w, w.ev.rotate(w.ev.rotate(a, 2), 3), test::rolled(x, 5), 2.0);
  expect_values(w, w.ev.rotate(w.ev.rotate(a, 3), -3), x, 2.0);
  expect_values(w, w.ev.conjugate(w.ev.conjugate(a)), x, 2.0);
  const auto both = test::map_values(test::rolled(x, 4), [](Complex v) { return std::conj(v); });
  expect_values(w, w.ev.conjugate(w.ev.rotate(a, 4)), both, 2.0);
  expect_values(w, w.ev.rotate(w.ev.conjugate(a), 4), both, 2.0);
}

TEST_P(CkksRotation, ManyFromOneModUpEqualSingleOnes) {
  auto& w = world("toy-boot40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots());
  const std::vector<i64> steps{1, 0, -7, 64, 1, 5};
  for (u32 level : {1u, 6u, w.params().max_level()}) {
    const Ciphertext a = w.client.encrypt(x, level);
    const auto many = w.ev.rotate_many(a, steps);
    ASSERT_EQ(many.size(), steps.size());
    for (u64 i = 0; i < many.size(); ++i) {
      expect_values(w, many[i], test::rolled(x, steps[i]));
      // Hoisting changes nothing: the same bits.
      EXPECT_EQ(w.client.decrypt(many[i]), w.client.decrypt(w.ev.rotate(a, steps[i])));
    }
  }
  EXPECT_TRUE(w.ev.rotate_many(w.client.encrypt(x), {}).empty());
}

TEST_P(CkksRotation, SumsOfRotations) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots());
  for (const std::vector<i64>& steps :
       {std::vector<i64>{0}, {5}, {0, 0}, {1, 1, 2}, {0, 1, 2, 3, 4, 5, 8, -1, -2, -3, -7}}) {
    Values expected(x.size());
    for (i64 s : steps) {
      const auto r = test::rolled(x, s);
      for (u64 i = 0; i < r.size(); ++i) expected[i] += r[i];
    }
    expect_values(w, w.ev.rotate_sum(w.client.encrypt(x), steps), expected,
                  static_cast<double>(steps.size()));
  }
  const auto e =
      test::expect_error<ParameterError>([&] { w.ev.rotate_sum(w.client.encrypt(x), {}); });
  EXPECT_STRNE(e.what(), "");
}

TEST_P(CkksRotation, SumsOverSlots) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const auto expect_sum = [&](u64 slots, u64 count, i64 stride) {
    SCOPED_TRACE(testing::Message() << slots << " slots, " << count << " at " << stride);
    const Values x = test::random_values(rng, slots);
    const Ciphertext a = w.client.encrypt(x, {}, 0.0, slots);
    Values expected(slots);
    for (u64 k = 0; k < count; ++k) {
      const auto r = test::rolled(x, static_cast<i64>(k) * stride);
      for (u64 i = 0; i < slots; ++i) expected[i] += r[i];
    }
    expect_values(w, w.ev.sum_slots(a, count, stride), expected, 2.0 * static_cast<double>(count));
  };
  expect_sum(w.slots(), 1, 1);
  expect_sum(w.slots(), 16, 1);
  expect_sum(w.slots(), 8, 32);
  expect_sum(w.slots(), 4, -1 + 2);
  expect_sum(w.slots(), 2, -7);
  expect_sum(64, 64, 1);
  for (u64 count : {u64(0), u64(3), 2 * w.slots()}) {
    const auto e = test::expect_error<ParameterError>(
        [&] { w.ev.sum_slots(w.client.encrypt(Values{1.0}), count); });
    EXPECT_EQ(e.field("count"), std::to_string(count));
  }
}

TEST_P(CkksRotation, MissingKeysAreNamed) {
  auto& w = world("s40");
  const Evaluator ev = w.context.evaluator(w.client.evaluation_keys({{1}, false, false}));
  const Values x(w.slots(), Complex(0.5, 0.5));
  const Ciphertext a = w.client.encrypt(x), before = a.clone();
  auto e = test::expect_error<KeyMissingError>([&] { ev.rotate(a, -3); });
  EXPECT_EQ(e.field("rotations"), "-3");
  EXPECT_NE(std::string(e.what()).find("rotations=[-3]"), std::string::npos);
  e = test::expect_error<KeyMissingError>([&] { ev.conjugate(a); });
  EXPECT_EQ(e.field("key"), "conjugate");
  e = test::expect_error<KeyMissingError>([&] { ev.rotate_many(a, std::vector<i64>{1, 6}); });
  EXPECT_EQ(e.field("rotations"), "6");
  e = test::expect_error<KeyMissingError>([&] { ev.rotate_sum(a, std::vector<i64>{0, 9}); });
  EXPECT_EQ(e.field("rotations"), "9");
  e = test::expect_error<KeyMissingError>([&] { ev.sum_slots(a, 4); });
  EXPECT_EQ(e.field("rotations"), "2");
  // All of them at once, as numbers, and the call that makes what the operation needs.
  const std::vector<i64> some{5, 0, 1, -2, 5};
  for (const bool sum : {false, true}) {
    e = test::expect_error<KeyMissingError>([&] {
      if (sum)
        ev.rotate_sum(a, some);
      else
        ev.rotate_many(a, some);
    });
    ASSERT_NE(e.find_field("rotations"), nullptr);
    EXPECT_EQ(std::get<FieldValue::List>(e.find_field("rotations")->value()),
              (FieldValue::List{-2, 5}));
    EXPECT_NE(std::string(e.what()).find("client.evaluation_keys(rotations=[-2, 1, 5])"),
              std::string::npos)
        << e.what();
  }
  e = test::expect_error<KeyMissingError>([&] { ev.sum_slots(a, 8, 2); });
  EXPECT_EQ(e.field("rotations"), "2, 4, 8");
  EXPECT_EQ(e.field("operation"), "sum_slots");
  for (const auto& product :
       {std::function<void()>([&] { ev.multiply(a, a); }),
        std::function<void()>([&] { ev.square(a); }),
        std::function<void()>([&] { ev.multiply_rescale(a, a); }),
        std::function<void()>([&] { ev.relinearise(ev.square_lazy(a)); }),
        std::function<void()>([&] { ev.relinearise_rescale(ev.square_lazy(a)); }),
        std::function<void()>([&] { ev.polynomial(a, std::vector<double>{0.0, 0.0, 1.0}); })}) {
    e = test::expect_error<KeyMissingError>(product);
    EXPECT_EQ(e.field("key"), "relinearisation");
  }
  EXPECT_EQ(w.client.decrypt(a), w.client.decrypt(before));
}

TEST_P(CkksRotation, MoreSlotsRepeatAndFewerOnlyWhereTheyRepeat) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const ErrorModel model(w.params());
  for (u64 few : {u64(1), u64(8), w.slots() / 2}) {
    SCOPED_TRACE(few);
    Values x = test::random_values(rng, few);
    const Ciphertext a = w.client.encrypt(x, {}, 0.0, few);
    const ErrorBound bound = model.input(test::max_error(x, Values(few)), false, {}, 0.0, few);
    for (u64 many = few; many <= w.slots(); many *= 4) {
      SCOPED_TRACE(many);
      Values repeated(many);
      for (u64 i = 0; i < many; ++i) repeated[i] = x[i % few];
      const Ciphertext b = w.ev.with_slots(a, many);
      EXPECT_EQ(b.slots(), many);
      EXPECT_EQ(b.level(), a.level());
      EXPECT_LT(test::max_error(w.client.decrypt(b), repeated), model.with_slots(bound, many).max);
      // What repeats may be read as fewer slots again; that it does is the caller's word.
      const Ciphertext back = w.ev.with_slots(b, few, true);
      EXPECT_LT(test::max_error(w.client.decrypt(back), x), bound.max);
      const ErrorBound returned = model.with_slots(model.with_slots(bound, many), few, true);
      EXPECT_GE(returned.max, bound.max);
      if (many == few) continue;
      EXPECT_THROW(w.ev.with_slots(b, few), StateError);
      EXPECT_THROW(model.with_slots(model.with_slots(bound, many), few), StateError);
      EXPECT_THROW(Operand(w.ev, b.clone()).with_slots(few), StateError);
    }
    EXPECT_EQ(a.slots(), few);
  }
  const Ciphertext a = w.client.encrypt(test::random_values(rng, 8), {}, 0.0, 8);
  for (u64 slots : {u64(0), u64(12), 2 * w.slots()})
    EXPECT_THROW(w.ev.with_slots(a, slots, true), ParameterError);
}

TEST_P(CkksRotation, ASumOverTheOthersRepeats) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Values x = test::random_values(rng, w.slots());
  const i64 stride = 1;
  const Ciphertext sum = w.ev.sum_slots(w.client.encrypt(x), w.slots(), stride);
  Complex total = 0.0;
  for (const Complex& v : x) total += v;
  const Values one{total};
  const Ciphertext scalar = w.ev.with_slots(sum, 1, true);
  EXPECT_EQ(scalar.slots(), 1u);
  expect_values(w, scalar, one, 4.0 * static_cast<double>(w.slots()));
  expect_values(w, w.ev.with_slots(scalar, 16), Values(16, total),
                4.0 * static_cast<double>(w.slots()));
}

// One rotation beside the vector itself takes another way than a hoisted sum, to the same bits.
TEST_P(CkksRotation, ASumOfOneRotationIsTheHoistedOne) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const auto& s = w.ev.state();
  const auto& ring = s.ring();
  for (u32 level = 0; level <= w.params().max_level(); ++level) {
    SCOPED_TRACE(level);
    const Ciphertext a =
        w.client.encrypt(test::random_values(rng, 2 * w.slots()), level, 0.0, 0, 2);
    const i64 steps[] = {0, -3};
    const u64 elements[] = {1, s.rotation_element(steps[1], w.slots(), level)};
    const auto keys = s.lease(elements);
    const rlwe::ConstView v = a.data().poly.view();
    const rlwe::Poly digits = s.switcher().mod_up(v.components(1, 1), level);
    rlwe::Poly acc(*s.stream, a.data().poly.shape(), ring.extended(level), ring::Domain::eval);
    s.kernels().hoisted_rotate_sum(*s.stream, acc.view(), digits.view(), v.components(0, 1),
                                   v.components(1, 1), keys.views(), elements,
                                   ring.special_scalars(level), ring.first_digit(level));
    const auto hoisted = test::words_of(s.switcher().mod_down(acc, level, nullptr));
    EXPECT_EQ(test::bits(w.ev.rotate_sum(a, steps)), hoisted);
    const i64 turned[] = {steps[1], 0};
    EXPECT_EQ(test::bits(w.ev.rotate_sum(a, turned)), hoisted);
  }
}

CRENEL_FAST_DEVICE_SUITE(CkksRotation);

}  // namespace
}  // namespace crenel::ckks
