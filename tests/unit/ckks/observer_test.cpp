// Evaluator::checked: right results pass, of every operation; the first one that leaves its range
// is named, and so is one that is wrong otherwise.
#include "ckks/observer.h"

#include "crenel/ckks/operand.h"
#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using test::bits;
using test::Complex;
using test::expect_error;
using test::Values;

class CkksObserver : public test::SchemeTest {};

TEST_P(CkksObserver, RightResultsOfEveryOperationPassAndAreTheSameBits) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Evaluator checked = w.ev.checked(w.client);
  const auto run = [&](const Evaluator& ev, const Ciphertext& x, const Ciphertext& y,
                       const Plaintext& p) {
    const i64 steps[] = {0, 1, -3};
    const std::vector<double> c{0.25, -0.5, 0.75, 0.0, 0.125, 0.5};
    std::vector<Ciphertext> out = ev.rotate_many(x, steps);
    for (auto f : std::vector<std::function<Ciphertext()>>{
             [&] { return ev.add(x, y); },
             [&] { return ev.sub(x, y); },
             [&] { return ev.negate(x); },
             [&] { return ev.add(x, p); },
             [&] { return ev.sub(x, p); },
             [&] { return ev.add(x, Complex(0.5, -0.25)); },
             [&] { return ev.multiply_integer(x, -3, 2); },
             [&] { return ev.multiply_monomial(x, -192); },
             [&] { return ev.multiply(x, p); },
             [&] { return ev.multiply(x, Complex(0.3, 0.1)); },
             [&] { return ev.multiply(x, y); },
             [&] { return ev.square(x); },
             [&] { return ev.relinearise(ev.multiply_lazy(x, y)); },
             [&] { return ev.relinearise_rescale(ev.square_lazy(x)); },
             [&] { return ev.add(ev.multiply_lazy(x, y), ev.multiply(x, y)); },
             [&] { return ev.rescale(ev.multiply_lazy(x, y)); },
             [&] { return ev.multiply_rescale(x, y); },
             [&] { return ev.adjust_level(x, 1); },
             [&] { return ev.rotate(x, 3); },
             [&] { return ev.conjugate(x); },
             [&] { return ev.rotate_sum(x, steps); },
             [&] { return ev.sum_slots(x, 4, -1); },
             [&] { return ev.polynomial(x, c); },
             [&] { return ev.polynomial(x, c, PolynomialBasis::chebyshev, -2.0, 1.5); }})
      out.push_back(f());
    return out;
  };
  for (u64 slots : {w.slots(), u64(16)})
    for (u32 batch : {1u, 2u}) {
      // ref takes seconds each: one batch there for each number of slots
      if (GetParam() == "ref" && (slots == 16) == (batch == 1)) continue;
      SCOPED_TRACE(cat(slots, " slots, batch ", batch));
      const Ciphertext x =
          w.client.encrypt(test::random_values(rng, batch * slots, 0.7), {}, 0.0, slots, batch);
      const Ciphertext y =
          w.client.encrypt(test::random_values(rng, batch * slots, 0.7), {}, 0.0, slots, batch);
      const Plaintext p = w.context.encode(test::random_values(rng, slots), {}, 0.0, slots);
      const auto found = run(checked, x, y, p), expected = run(w.ev, x, y, p);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_EQ(bits(found[i]), bits(expected[i])) << i;
    }
}

TEST_P(CkksObserver, TheFirstResultOutOfRangeIsNamedAtEveryLevel) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const Evaluator checked = w.ev.checked(w.client);
  const Params& p = w.params();
  for (u32 l = 0; l <= 2; ++l) {
    SCOPED_TRACE(cat("level ", l));
    // A constant vector is one coefficient: it takes the whole range.
    const double value = std::uniform_real_distribution<>(0.5, 1.0)(rng);
    const Ciphertext x = w.client.encrypt(Values(w.slots(), value), l);
    const double scale = l == 0 ? x.scale() : x.scale() * w.ev.state().constant_scale(x);
    const double most = p.max_value(l, scale) / value;
    const auto times = [&](const Evaluator& ev, const Ciphertext& a, double k) {
      return l == 0 ? ev.multiply_integer(a, static_cast<i64>(k)) : ev.multiply(a, Complex(k));
    };
    const Ciphertext wrong = times(w.ev, x, 1.3 * most);  // without a sign
    EXPECT_GT(std::abs(w.client.decrypt(wrong)[0] - 1.3 * most * value), 0.1 * most);
    const auto e = expect_error<StateError>([&] {
      const Ciphertext first = checked.add(x, x);
      checked.negate(times(checked, checked.sub(first, x), 1.3 * most));
    });
    EXPECT_EQ(e.field("operation"), l == 0 ? "multiply_integer" : "multiply");
    EXPECT_EQ(e.field("level"), cat(l));
    EXPECT_NEAR(std::stod(e.field("factor")), 1.3 * (1.0 - 0x1p-10), 0.01);
    times(checked, x, 0.99 * most);  // what just fits passes
  }
  // A product that level 0 will not hold, lowered.
  const Ciphertext x = w.client.encrypt(Values(w.slots(), 30.0), 3);
  const auto e =
      expect_error<StateError>([&] { checked.adjust_level(checked.multiply_rescale(x, x), 0); });
  EXPECT_EQ(e.field("operation"), "adjust_level");
  EXPECT_EQ(e.field("level"), "0");
  const auto convenient = expect_error<StateError>(
      [&] { (Operand(checked, x.clone()) * 0.5).at_level(0).multiply(100).add(1.0); });
  EXPECT_EQ(convenient.field("operation"), "multiply_integer");
}

TEST_P(CkksObserver, AWrongResultIsNamed) {
  auto& w = world("s40");
  const Evaluator checked = w.ev.checked(w.client);
  // The scale is claimed wrongly: a constant at this scale is another one.
  Ciphertext x = w.client.encrypt(Values(w.slots(), 0.5), 2);
  const Observer observer(w.ev, w.client);
  const auto e = expect_error<StateError>([&] {
    observer.watch(
        "forged",
        [](const auto& on, const auto& a) {
          if constexpr (std::is_same_v<std::decay_t<decltype(on)>, Evaluator>)
            return on.add(a, Complex(0x1p-12));
          else
            return on.negate(on.negate(a));
        },
        x);
  });
  EXPECT_EQ(e.field("operation"), "forged");
  EXPECT_NEAR(std::stod(e.field("error")), 0x1p-12, 0x1p-16);
}

TEST_P(CkksObserver, ClientsOfOthersAreRefusedAndStreamsKept) {
  auto& w = world("s40");
  const Client other = w.context.keygen();
  EXPECT_THROW(w.ev.checked(other), StateError);
  const Evaluator moved =
      w.ev.checked(w.client).checked(w.client).on(w.context.device().make_stream());
  const Ciphertext x = w.client.encrypt(Values(w.slots(), 1.0), 0);
  moved.stream().wait_for(w.ev.stream());
  EXPECT_THROW(moved.multiply_integer(x, 1000), StateError);
  EXPECT_THROW(moved.multiply_integer(moved.rotate(x, 1), 1000), StateError);
  moved.stream().synchronize();
}

CRENEL_FAST_DEVICE_SUITE(CkksObserver);

}  // namespace
}  // namespace crenel::ckks
