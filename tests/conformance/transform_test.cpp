// NTT, inverse NTT and automorphisms against ref.
#include "support/chains.h"
#include "support/devices.h"
#include "support/same.h"

namespace crenel::test {
namespace {

class Transform : public DeviceTest {};
CRENEL_POLY_SUITE(Transform);

using Ctx = Context;
using V = Views;

// Every log N; many shapes where ref is quick, few where it is not.
const ShapeCase kTransformShapes[] = {
    {"2^10", 10, 1, 1, 0, 4, {}},
    {"2^10 many limbs", 10, 2, 3, 0, 23, {}},
    {"2^10 window", 10, 3, 3, 2, 5, {2, 2, 1, 1}},
    {"2^11", 11, 2, 1, 1, 3, {1, 0, 0, 0}},
    {"2^12", 12, 2, 3, 0, 5, {0, 2, 0, 1}},
    {"2^13", 13, 1, 3, 2, 7, {2, 0, 0, 0}},
    {"2^14", 14, 3, 1, 0, 3, {0, 1, 0, 0}},
    {"2^15", 15, 2, 1, 1, 3, {1, 1, 0, 0}},
    {"2^16", 16, 1, 1, 0, 5, {}},
    {"2^17", 17, 1, 1, 0, 3, {}},
};

void check_both(Pair& pair, Rng& rng, const ShapeCase& s, Fill fill) {
  SCOPED_TRACE(cat(s.name, ", ", name_of(fill)));
  const auto coeff =
      random_poly(pair.ring(), rng, s.shape(), s.limbs(), Domain::coeff, s.pad, fill);
  auto eval = coeff;
  eval.view.domain = Domain::eval;
  auto out_eval = garbage_poly(rng, s.shape(), s.limbs(), Domain::eval);
  auto out_coeff = out_eval;
  out_coeff.view.domain = Domain::coeff;
  {
    SCOPED_TRACE("ntt");
    expect_same(pair, {out_eval, coeff}, 1,
                [](Ctx& c, const V& v) { c.kernels->ntt(*c.stream, v[0], v[1]); });
  }
  {
    SCOPED_TRACE("intt");
    expect_same(pair, {out_coeff, eval}, 1,
                [](Ctx& c, const V& v) { c.kernels->intt(*c.stream, v[0], v[1]); });
  }
}

TEST_P(Transform, EverySize) {
  Rng rng = test_rng();
  for (const auto& s : kTransformShapes) {
    auto pair = make_pair(device_, s.log_n, mixed_primes(s.log_n, s.log_n <= 13 ? 26 : 6));
    check_both(pair, rng, s, Fill::random);
  }
}

TEST_P(Transform, SpecialValues) {
  Rng rng = test_rng();
  for (const auto& s : kTransformShapes) {
    if (s.log_n > 12 && s.log_n != 16) continue;
    auto pair = make_pair(device_, s.log_n, mixed_primes(s.log_n, s.log_n <= 13 ? 26 : 6));
    for (const Fill fill : {Fill::zero, Fill::top, Fill::alternating, Fill::periodic})
      if (s.log_n < 16 || fill == Fill::top) check_both(pair, rng, s, fill);
  }
}

TEST_P(Transform, LargestPrimes) {
  Rng rng = test_rng();
  for (const u32 log_n : {10u, 13u}) {
    auto pair = make_pair(device_, log_n, largest_primes(log_n, 4));
    const ShapeCase s{"primes just below 2^31", log_n, 1, 1, 0, 4, {}};
    for (const Fill fill : {Fill::random, Fill::top}) check_both(pair, rng, s, fill);
  }
}

TEST_P(Transform, InPlace) {
  Rng rng = test_rng();
  for (const auto& s : kTransformShapes) {
    SCOPED_TRACE(s.name);
    auto pair = make_pair(device_, s.log_n, mixed_primes(s.log_n, s.log_n <= 13 ? 26 : 6));
    // On the largest rings the candidate's round trip alone stands for a comparison with slow ref.
    const auto p = random_poly(pair.ring(), rng, s.shape(), s.limbs(), Domain::coeff, s.pad);
    const auto there = [](Ctx& c, const V& v) {
      auto eval = v[0];
      eval.domain = Domain::eval;
      c.kernels->ntt(*c.stream, eval, v[0]);
    };
    const auto there_and_back = [&](Ctx& c, const V& v) {
      there(c, v);
      auto eval = v[0];
      eval.domain = Domain::eval;
      c.kernels->intt(*c.stream, v[0], eval);
    };
    if (s.log_n <= 13) expect_same(pair, {p}, 1, there);
    expect_same(pair, {p}, 1, there_and_back, [](Ctx&, const V&) {});
  }
}

TEST_P(Transform, Automorphism) {
  Rng rng = test_rng();
  for (const auto& s : kTransformShapes) {
    auto pair = make_pair(device_, s.log_n, mixed_primes(s.log_n, s.log_n <= 13 ? 26 : 6));
    const u64 two_n = u64(2) << s.log_n;
    for (const u64 element : {u64(1), u64(5), u64(25), two_n - 1, u64(3), rng() % two_n | 1})
      for (const Domain d : {Domain::coeff, Domain::eval}) {
        SCOPED_TRACE(cat(s.name, ", element ", element, d == Domain::coeff ? ", coeff" : ", eval"));
        const Fill fill = element == 5 ? Fill::alternating : Fill::random;
        expect_same(pair,
                    {garbage_poly(rng, s.shape(), s.limbs(), d, s.pad),
                     random_poly(pair.ring(), rng, s.shape(), s.limbs(), d, s.pad, fill)},
                    1, [&](Ctx& c, const V& v) {
                      c.kernels->automorphism(*c.stream, v[0], v[1], element);
                    });
      }
  }
}

}  // namespace
}  // namespace crenel::test
