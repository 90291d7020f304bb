// Products with X^power: by the definition on coefficients, on slots, and what is known of them.
#include "ckks/monomial.h"

#include <bit>
#include <numbers>

#include "ckks/objects.h"
#include "crenel/ckks/error_model.h"
#include "crenel/ckks/operand.h"
#include "support/ckks_world.h"

namespace crenel::ckks {
namespace {

using test::bits;
using test::Complex;
using test::expect_error;
using test::Values;

std::vector<u32> coefficients(const Ciphertext& c, const Context::State& state) {
  const auto& poly = c.data().poly;
  rlwe::Poly copy(poly.stream(), poly.shape(), poly.limbs(), ring::Domain::coeff);
  state.ring->kernels().intt(poly.stream(), copy.view(), poly.view());
  return test::words_of(copy);
}

/// Powers of every divisibility, both signs, and beyond 2N.
std::vector<i64> powers(test::Rng& rng, i64 ring_dim) {
  std::vector<i64> p{0,           1, -1, ring_dim, ring_dim / 2, -ring_dim / 2, 3 * ring_dim / 2,
                     2 * ring_dim};
  for (i64 two = 1; two < ring_dim; two *= 2)
    p.push_back(two * static_cast<i64>(2 * (rng() % (4 * u64(ring_dim) / u64(two))) + 1) -
                ring_dim);
  p.push_back(std::numeric_limits<i64>::min());
  p.push_back(std::numeric_limits<i64>::max());
  return p;
}

i64 modulo(i64 power, i64 order) { return ((power % order) + order) % order; }

class CkksMonomial : public test::SchemeTest {};

TEST_P(CkksMonomial, MovesCoefficients) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const i64 n = static_cast<i64>(w.params().ring_dim());
  const auto& ring = *w.context.state().ring;
  for (const u32 level : {0u, 3u, w.params().max_level()})
    for (const bool lazy : {false, true}) {
      if (lazy && level == 0) continue;  // a product does not fit
      const Ciphertext x =
          w.client.encrypt(test::random_values(rng, 2 * w.slots()), level, 0.0, 0, 2);
      const Ciphertext a = lazy ? w.ev.square_lazy(x) : x.clone();  // three components too
      const auto from = coefficients(a, w.context.state());
      for (const i64 power : powers(rng, n)) {
        SCOPED_TRACE(cat("power ", power, " level ", level));
        const auto found = coefficients(w.ev.multiply_monomial(a, power), w.context.state());
        const i64 p = modulo(power, 2 * n);
        auto expected = from;
        const auto& limbs = a.data().poly.limbs();
        for (std::size_t limb = 0; limb < from.size() / n; ++limb) {
          const u32 q = static_cast<u32>(ring.modulus(limbs[u32(limb % limbs.size())]).q);
          for (i64 i = 0; i < n; ++i) {
            const u32 c = from[limb * n + i];
            const bool minus = (i + p) / n % 2 == 1;
            expected[limb * n + (i + p) % n] = minus && c != 0 ? q - c : c;
          }
        }
        EXPECT_TRUE(found == expected);
      }
    }
}

TEST_P(CkksMonomial, SlotsAreMultipliedByRootsAndTheirNumberIsAsSmallAsItCanBe) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const i64 n = static_cast<i64>(w.params().ring_dim());
  for (const u64 slots : {w.slots(), u64(64), u64(1)}) {
    const Values x = test::random_values(rng, slots);
    const Ciphertext a = w.client.encrypt(x, 2u, 0.0, slots);
    for (const i64 power : powers(rng, n)) {
      SCOPED_TRACE(cat("power ", power, " slots ", slots));
      const Ciphertext c = w.ev.multiply_monomial(a, power);
      EXPECT_EQ(c.level(), a.level());
      EXPECT_EQ(c.scale(), a.scale());
      const u64 p = static_cast<u64>(modulo(power, 2 * n));
      // The whole vector, by the definition.
      Values full(w.slots());
      u64 five = 1;
      for (u64 j = 0; j < full.size(); ++j, five = five * 5 % (2 * n))
        full[j] = x[j % slots] *
                  std::polar(1.0, std::numbers::pi * static_cast<double>(p * five % (2 * n)) / n);
      u64 period = w.slots();
      while (period > slots &&
             test::max_error(Values(full.begin(), full.begin() + long(period / 2)),
                             Values(full.begin() + long(period / 2), full.begin() + long(period))) <
                 1e-9)
        period /= 2;
      EXPECT_EQ(c.slots(), period);
      EXPECT_EQ(c.slots() == slots, p % (u64(n) / 2 / slots) == 0);
      full.resize(c.slots());
      EXPECT_LT(test::max_error(w.client.decrypt(c), full), test::tolerance(w.params()));
    }
  }
}

TEST_P(CkksMonomial, NegationIAndComposition) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const i64 n = static_cast<i64>(w.params().ring_dim());
  const Ciphertext a = w.client.encrypt(test::random_values(rng, w.slots()));
  EXPECT_EQ(bits(w.ev.multiply_monomial(a, n)), bits(w.ev.negate(a)));
  EXPECT_EQ(bits(w.ev.multiply_monomial(a, n / 2)), bits(w.ev.multiply_integer(a, 0, 1)));
  EXPECT_EQ(bits(w.ev.multiply_monomial(a, -n / 2)), bits(w.ev.multiply_integer(a, 0, -1)));
  for (int round = 0; round < 4; ++round) {
    const i64 p = static_cast<i64>(rng() % (2 * n)), q = static_cast<i64>(rng() % (2 * n)) - n;
    SCOPED_TRACE(cat(p, " and ", q));
    const Ciphertext once = w.ev.multiply_monomial(a, p + q);
    EXPECT_EQ(bits(w.ev.multiply_monomial(w.ev.multiply_monomial(a, p), q)), bits(once));
    EXPECT_EQ(bits(w.ev.multiply_monomial(once, -p - q)), bits(a));
    EXPECT_EQ(bits(Operand(w.ev, a.clone()).multiply_monomial(p).ciphertext()),
              bits(w.ev.multiply_monomial(a, p)));
  }
}

TEST_P(CkksMonomial, WhatIsKnownOfTheResult) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const i64 n = static_cast<i64>(w.params().ring_dim());
  const u64 slots = 32;
  const Ciphertext a = w.client.encrypt(test::random_reals(rng, slots), 4u, 0.0, slots, 1, 1.25);
  const ErrorModel model(w.params());
  const ErrorBound in = model.input(1.25, true, 4u, 0.0, slots);
  const Evaluator checked = w.ev.checked(w.client);
  for (const i64 power : powers(rng, n)) {
    SCOPED_TRACE(power);
    const Ciphertext c = checked.multiply_monomial(a, power);  // compares with the clear
    EXPECT_EQ(c.bound(), 1.25);
    EXPECT_EQ(c.metadata().real, modulo(power, n) == 0);
    const ErrorBound out = model.multiply_monomial(in, power);
    EXPECT_EQ(out.slots(), c.slots());
    EXPECT_EQ(out.meta.real, c.metadata().real);
    EXPECT_EQ(out.message, in.message);
    EXPECT_EQ(out.ring, in.ring);
    EXPECT_EQ(out.max, c.slots() == slots ? in.max : std::max(in.max, in.ring));
  }
}

TEST_P(CkksMonomial, InARecordingAndAfterIt) {
  auto& w = world("s40");
  auto rng = test::test_rng();
  const auto fresh = [&] {
    std::vector<Ciphertext> in;
    in.push_back(w.client.encrypt(test::random_values(rng, w.slots())));
    return in;
  };
  const i64 power = 2 * static_cast<i64>(rng() % w.params().ring_dim()) + 1;  // first met in there
  const auto f = [&](const Evaluator& ev, std::span<const Ciphertext> in) {
    std::vector<Ciphertext> out;
    out.push_back(ev.rotate(ev.multiply_monomial(in[0], power), 1));
    return out;
  };
  const auto first = fresh();
  Graph own(w.ev, first, [&](std::span<const Ciphertext> in) { return f(w.ev, in); });
  Graph keyed(w.ev, first, Graph::KeyedFunction(f));
  for (int round = 0; round < 2; ++round) {
    const auto in = fresh();
    const auto expected = bits(f(w.ev, in)[0]);
    EXPECT_EQ(bits(own.replay(in)[0]), expected);
    EXPECT_EQ(bits(keyed.replay(w.ev, in)[0]), expected);
  }
}

CRENEL_DEVICE_SUITE(CkksMonomial);

}  // namespace
}  // namespace crenel::ckks
