// Bounds of messages: sound for every operation, refused where they leave the range of a level, and
// carried by graphs.
#include "ckks/magnitude.h"

#include "crenel/ckks/error_model.h"
#include "crenel/ckks/operand.h"
#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using test::bits;
using test::Complex;
using test::expect_error;
using test::Values;

double largest(const Values& v) {
  double m = 0.0;
  for (const Complex& x : v) m = std::max(m, std::abs(x));
  return m;
}

class CkksMagnitude : public test::SchemeTest {
 protected:
  Ciphertext encrypt(test::World& w, const std::vector<double>& v, double bound,
                     std::optional<u32> level = {}) {
    return w.client.encrypt(v, level, 0.0, 0, 1, bound);
  }
  /// The bound is known, holds, and is not above `expected`.
  void expect_bound(test::World& w, const Ciphertext& c, double expected, const char* what) {
    SCOPED_TRACE(what);
    EXPECT_LE(c.bound(), expected * (1.0 + 1e-12));
    EXPECT_LE(largest(w.client.decrypt(c)), c.bound() + 1e-4);
  }
};

TEST_P(CkksMagnitude, MaxValueIsHalfTheModulusLessTheRoomForErrors) {
  for (const char* set : every_scale()) {
    const Params& p = test::world_params(set);
    for (u32 l = 0; l <= p.max_level(); ++l) {
      const double half = std::exp2(p.log_q(l) - 1.0 - std::log2(p.scale(l)));
      EXPECT_NEAR(p.max_value(l) / half, 1.0 - 0x1p-10, 1e-9) << set << " level " << l;
      EXPECT_NEAR(p.max_value(l, 16.0 * p.scale(l)) * 16.0 / p.max_value(l), 1.0, 1e-9);
    }
    EXPECT_EQ(expect_error<ParameterError>([&] { p.max_value(p.max_level() + 1); }).field("level"),
              cat(p.max_level() + 1));
    for (double scale : {-1.0, 0.5, std::nan(""), std::exp2(p.log_q(0) + 1.0)})
      EXPECT_THROW(p.max_value(0, scale), ParameterError) << scale;
  }
}

TEST_P(CkksMagnitude, EveryOperationsBoundHolds) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const double bx = std::uniform_real_distribution<>(0.5, 3.0)(rng);
  const double by = std::uniform_real_distribution<>(0.5, 3.0)(rng);
  auto vx = test::random_reals(rng, w.slots(), -bx, bx);
  auto vy = test::random_reals(rng, w.slots(), -by, by);
  vx[0] = bx, vy[0] = by, vx[1] = -bx, vy[1] = by;  // the bounds are taken
  const Ciphertext x = encrypt(w, vx, bx), y = encrypt(w, vy, by);
  const Plaintext p = w.context.encode(vy);
  EXPECT_NEAR(p.bound(), by, 1e-12) << "a plaintext knows its largest slot";
  const auto& ev = w.ev;
  const auto expect = [&](const Ciphertext& c, double bound, const char* what) {
    expect_bound(w, c, bound, what);
    EXPECT_GE(c.bound(), bound * (1.0 - 1e-12)) << what;
  };
  expect(ev.add(x, y), bx + by, "add");
  expect(ev.sub(x, y), bx + by, "sub");
  expect(ev.negate(x), bx, "negate");
  expect(ev.add(x, p), bx + by, "add plaintext");
  expect(ev.sub(x, p), bx + by, "sub plaintext");
  expect(ev.add(x, Complex(3.0, -4.0)), bx + 5.0, "add constant");
  expect(ev.multiply_integer(x, -3, 4), 5.0 * bx, "multiply_integer");
  expect(ev.multiply_monomial(x, -5), bx, "multiply_monomial");
  const Plaintext factor = w.context.encode(vy, {}, w.params().rescale_ratio(x.level()));
  expect(ev.rescale(ev.multiply(x, factor)), bx * by, "multiply plaintext");
  expect(ev.rescale(ev.multiply(x, Complex(-0.6, 0.8))), bx, "multiply constant");
  expect(ev.rescale(ev.multiply(x, y)), bx * by, "multiply");
  expect(ev.multiply_rescale(x, y), bx * by, "multiply_rescale");
  expect(ev.rescale(ev.square(x)), bx * bx, "square");
  expect(ev.relinearise_rescale(ev.multiply_lazy(x, y)), bx * by, "multiply_lazy");
  expect(ev.relinearise_rescale(ev.square_lazy(y)), by * by, "square_lazy");
  expect(ev.rescale(ev.relinearise(ev.add(ev.multiply_lazy(x, y), ev.square_lazy(x)))),
         bx * by + bx * bx, "sum of products");
  expect(ev.adjust_level(x, 1), bx, "adjust_level");
  expect(ev.rotate(x, 3), bx, "rotate");
  expect(ev.conjugate(x), bx, "conjugate");
  const i64 steps[] = {0, 1, -3};
  for (const Ciphertext& c : ev.rotate_many(x, steps)) expect(c, bx, "rotate_many");
  expect(ev.rotate_sum(x, steps), 3.0 * bx, "rotate_sum");
  expect(ev.sum_slots(x, 8), 8.0 * bx, "sum_slots");
  const std::vector<double> c{0.25, -0.5, 0.75, 0.0, 0.125};
  double power = 0.0;
  for (std::size_t k = c.size(); k-- > 0;) power = power * bx + std::abs(c[k]);
  expect_bound(w, ev.polynomial(x, c), power, "power basis");
  expect(ev.polynomial(x, std::vector<double>{2.5}), 2.5, "constant polynomial");
  // On the interval every |T_i| is at most 1.
  expect_bound(w, ev.polynomial(x, c, PolynomialBasis::chebyshev, -bx, bx), 1.625, "Chebyshev");
  const std::vector<double> high = test::random_reals(rng, 48);
  double sum = 0.0;
  for (double v : high) sum += std::abs(v);
  const Ciphertext t = ev.polynomial(x, high, PolynomialBasis::chebyshev, -bx, bx);
  EXPECT_TRUE(magnitude::known(t.bound()));
  EXPECT_LE(largest(w.client.decrypt(t)), t.bound() + 1e-3);
  const Ciphertext rows[] = {x.clone(), y.clone()};
  const Ciphertext* parts[] = {&rows[0], &rows[1]};
  expect(concatenate(parts), std::max(bx, by), "concatenate");
  expect(x.slice(0, 1), bx, "slice");
  expect((Operand(ev, x.clone()) * Operand(ev, y.clone()) + vy).ciphertext(), bx * by + by,
         "operands");
}

TEST_P(CkksMagnitude, TheErrorModelHasTheSameRules) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const ErrorModel m(w.params());
  const auto v = test::random_reals(rng, w.slots());
  const Ciphertext x = encrypt(w, v, 1.0);
  const ErrorBound e = m.input(1.0, true);
  const auto c = test::random_reals(rng, 20);
  const auto both = [&](const auto& ev, const auto& a) {
    return ev.sum_slots(
        ev.add(ev.polynomial(a, c, PolynomialBasis::chebyshev, -2.0, 2.0), Complex(0.5, 0.5)), 4);
  };
  EXPECT_NEAR(both(w.ev, x).bound() / both(m, e).message, 1.0, 1e-12);
}

TEST_P(CkksMagnitude, OverflowIsRefusedAtEveryLevelBeforeAnyWork) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Params& p = w.params();
  for (u32 l = 0; l <= p.normal_top_level(); l += exhaustive() ? 1 : 4) {
    SCOPED_TRACE(cat("level ", l));
    const auto v = test::random_reals(rng, w.slots());
    const Ciphertext x = encrypt(w, v, 1.0, l);
    const auto before = bits(x);
    const double most = std::min(p.max_value(l), 0x1p62);
    const i64 fits = static_cast<i64>(most * (1.0 - 1e-9)), leaves = fits + fits / 1000 + 2;
    EXPECT_LE(w.ev.multiply_integer(x, fits).bound(), most);
    if (p.max_value(l) < 0x1p62) {
      const auto e = expect_error<StateError>([&] { w.ev.multiply_integer(x, leaves); });
      EXPECT_EQ(e.field("operation"), "multiply_integer");
      EXPECT_EQ(e.field("level"), cat(l));
      EXPECT_EQ(e.field("bound"), cat(double(leaves)));
      EXPECT_EQ(e.field("max_value"), cat(p.max_value(l)));
    }
    EXPECT_EQ(expect_error<StateError>([&] {
                w.ev.add(x, Complex(p.max_value(l) * 1.01));
              }).field("operation"),
              "add");
    EXPECT_EQ(bits(x), before);
    EXPECT_LT(test::max_error(w.client.decrypt(x), Values(v.begin(), v.end())), 1e-4);
  }
  // What a level holds need not fit a lower one.
  const Ciphertext high = encrypt(w, {100.0}, 1e5);
  EXPECT_EQ(expect_error<StateError>([&] { w.ev.adjust_level(high, 0); }).field("operation"),
            "adjust_level");
  const Ciphertext x = encrypt(w, {0.5}, 2000.0, 2), low = encrypt(w, {0.5}, 1e6, 1);
  for (const auto& [f, name] : std::vector<std::pair<std::function<Ciphertext()>, std::string>>{
           {[&] { return w.ev.multiply(x, 1e18); }, "multiply"},
           {[&] { return w.ev.polynomial(x, std::vector<double>{0.0, 0.0, 1e9}); }, "polynomial"},
           {[&] { return w.ev.sum_slots(w.ev.multiply_integer(low, 1000000), 1024); },
            "sum_slots"}})
    EXPECT_EQ(expect_error<StateError>(f).field("operation"), name);
}

TEST_P(CkksMagnitude, WhatIsUnknownStaysUnknownAndIsNotChecked) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const auto v = test::random_reals(rng, w.slots());
  const Ciphertext x = w.client.encrypt(v, 1), known = encrypt(w, v, 1.0, 1);
  const Plaintext p = w.context.encode(v, 1);
  EXPECT_EQ(x.bound(), kUnknownBound);
  EXPECT_EQ(w.client.encrypt(p).bound(), kUnknownBound) << "the largest slot would be told";
  EXPECT_EQ(w.client.public_key().encrypt(p).bound(), kUnknownBound);
  EXPECT_EQ(w.ev.add(x, known).bound(), kUnknownBound);
  EXPECT_EQ(w.ev.multiply(known, x).bound(), kUnknownBound);
  EXPECT_EQ(w.ev.multiply(x, p).bound(), kUnknownBound);
  EXPECT_EQ(w.ev.multiply_integer(x, 0).bound(), kUnknownBound);
  EXPECT_EQ(w.ev.multiply_integer(x, i64(1) << 60).bound(), kUnknownBound);
  // Stated, it goes with what is encrypted; with either key.
  const Plaintext stated = w.context.encode(v, 1, 0.0, 0, 1, 1.5);
  EXPECT_EQ(stated.bound(), 1.5);
  EXPECT_EQ(w.client.encrypt(stated).bound(), 1.5);
  EXPECT_EQ(w.client.public_key().encrypt(stated).bound(), 1.5);
  Ciphertext y = x.clone();
  y.state_bound(2.0);
  EXPECT_EQ(y.bound(), 2.0);
  y.state_bound(kUnknownBound);
  EXPECT_EQ(y.bound(), kUnknownBound);
  for (double bad : {0.0, -1.0, std::nan("")}) EXPECT_THROW(y.state_bound(bad), ParameterError);
}

TEST_P(CkksMagnitude, StatedBoundsAreCheckedWithoutTellingValues) {
  auto& w = world("s40");
  std::vector<double> v(2 * w.slots(), 0.5);
  v[w.slots() + 7] = -1.25;
  const auto e = expect_error<ParameterError>([&] { w.client.encrypt(v, {}, 0.0, 0, 2, 1.0); });
  EXPECT_EQ(e.field("index"), "7");
  EXPECT_EQ(e.field("row"), "1");
  EXPECT_EQ(std::string(e.what()).find("1.25"), std::string::npos);
  for (double bad : {0.0, -1.0, std::nan(""), -kUnknownBound})
    EXPECT_THROW(w.client.encrypt(v, {}, 0.0, 0, 2, bad), ParameterError) << bad;
  const double most = w.params().max_value(0);
  EXPECT_EQ(w.client.encrypt(v, 0, 0.0, 0, 2, most).bound(), most);
  EXPECT_EQ(expect_error<ParameterError>([&] {
              w.client.encrypt(v, 0, 0.0, 0, 2, std::nextafter(most, kUnknownBound));
            }).field("max_value"),
            cat(most));
}

TEST_P(CkksMagnitude, GraphsTakeInputsOfAtMostTheRecordedBound) {
  auto& w = world("s40");
  std::vector<Ciphertext> in;
  in.push_back(encrypt(w, {0.5}, 2.0, 1));
  Graph graph(w.ev, in, [&](std::span<const Ciphertext> x) {
    std::vector<Ciphertext> out;
    out.push_back(w.ev.multiply_integer(x[0], 200));
    return out;
  });
  EXPECT_EQ(graph.replay(in)[0].bound(), 400.0);
  const auto with = [&](double bound) {
    std::vector<Ciphertext> other;
    other.push_back(encrypt(w, {0.25}, bound, 1));
    return other;
  };
  const auto out = graph.replay(with(1.0));
  EXPECT_NEAR(w.client.decrypt(out[0])[0].real(), 50.0, 1e-4);
  EXPECT_EQ(out[0].bound(), 400.0);
  EXPECT_EQ(expect_error<StateError>([&] { graph.replay(with(2.5)); }).field("bound"), "2.5");
  EXPECT_THROW(graph.replay(with(kUnknownBound)), StateError);
}

CRENEL_DEVICE_SUITE(CkksMagnitude);

}  // namespace
}  // namespace crenel::ckks
