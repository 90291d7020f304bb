// Element-wise operations against ref.
#include "support/chains.h"
#include "support/devices.h"
#include "support/same.h"

namespace crenel::test {
namespace {

class Arithmetic : public DeviceTest {};
CRENEL_POLY_SUITE(Arithmetic);

using Ctx = Context;
using V = Views;

constexpr u32 kArithmeticPrimes = 26;

const ShapeCase kArithmeticShapes[] = {
    {"one limb", 10, 1, 1, 0, 1, {}},
    {"odd window", 11, 2, 3, 2, 5, {2, 1, 0, 1}},
    {"three components", 12, 3, 1, 1, 7, {0, 3, 1, 0}},
    {"many limbs", 10, 2, 1, 0, 26, {}},
    {"batch and components", 10, 3, 3, 3, 3, {1, 1, 1, 1}},
    {"large ring", 15, 1, 1, 0, 3, {}},
    {"largest ring", 17, 1, 1, 0, 1, {}},
};

struct BinaryOp {
  const char* name;
  void (device::PolyKernels::*op)(device::Stream&, const PolyView<u32>&, const PolyView<const u32>&,
                                  const PolyView<const u32>&);
  bool reads_output;
};
using K = device::PolyKernels;
const BinaryOp kBinary[] = {{"add", &K::add, false},
                            {"sub", &K::sub, false},
                            {"mul", &K::mul, false},
                            {"mul_add", &K::mul_add, true}};

struct ScalarOp {
  const char* name;
  void (K::*op)(device::Stream&, const PolyView<u32>&, const PolyView<const u32>&,
                const device::LimbScalars&);
  bool reads_output;
};
const ScalarOp kScalar[] = {{"mul_scalar", &K::mul_scalar, false},
                            {"mul_add_scalar", &K::mul_add_scalar, true},
                            {"add_scalar", &K::add_scalar, false}};

TestPoly output(const ring::Ring& ring, Rng& rng, const ShapeCase& s, Domain d, bool read) {
  auto p = garbage_poly(rng, s.shape(), s.limbs(), d, s.pad);
  if (read) fill_canonical(p, ring, rng);
  return p;
}

device::LimbScalars filled_scalars(const ring::Ring& ring, Rng& rng, const LimbSet& limbs,
                                   Fill fill) {
  device::LimbScalars s;
  for (u32 i = 0; i < limbs.size(); ++i) {
    const u32 q = ring.modulus(limbs[i]).q;
    fill_limb<u32>(&s.low[i], 1, q, fill, rng);
    fill_limb<u32>(&s.high[i], 1, q, fill, rng);
  }
  return s;
}

TEST_P(Arithmetic, Binary) {
  Rng rng = test_rng();
  for (const auto& s : kArithmeticShapes) {
    auto pair = make_pair(device_, s.log_n, mixed_primes(s.log_n, kArithmeticPrimes));
    for (const auto& op : kBinary)
      for (const Domain d : {Domain::coeff, Domain::eval}) {
        SCOPED_TRACE(cat(op.name, ", ", s.name));
        expect_same(
            pair,
            {output(pair.ring(), rng, s, d, op.reads_output),
             random_poly(pair.ring(), rng, s.shape(), s.limbs(), d, s.pad),
             random_poly(pair.ring(), rng, s.shape(), s.limbs(), d)},
            1, [&](Ctx& c, const V& v) { (c.kernels.get()->*op.op)(*c.stream, v[0], v[1], v[2]); });
      }
  }
}

TEST_P(Arithmetic, BinaryInPlace) {
  Rng rng = test_rng();
  const ShapeCase s = kArithmeticShapes[1];
  auto pair = make_pair(device_, s.log_n, mixed_primes(s.log_n, kArithmeticPrimes));
  const auto a = random_poly(pair.ring(), rng, s.shape(), s.limbs(), Domain::eval, s.pad);
  const auto b = random_poly(pair.ring(), rng, s.shape(), s.limbs(), Domain::eval, s.pad);
  for (const auto& op : kBinary) {
    SCOPED_TRACE(op.name);
    const auto call = [&](Ctx& c, auto out, auto x, auto y) {
      (c.kernels.get()->*op.op)(*c.stream, out, x, y);
    };
    expect_same(pair, {a, b}, 1, [&](Ctx& c, const V& v) { call(c, v[0], v[0], v[1]); });
    expect_same(pair, {a, b}, 1, [&](Ctx& c, const V& v) { call(c, v[0], v[1], v[0]); });
    expect_same(pair, {a}, 1, [&](Ctx& c, const V& v) { call(c, v[0], v[0], v[0]); });
  }
}

TEST_P(Arithmetic, BinaryBroadcast) {
  Rng rng = test_rng();
  const ShapeCase s = kArithmeticShapes[4];
  auto pair = make_pair(device_, s.log_n, mixed_primes(s.log_n, kArithmeticPrimes));
  const u32 shapes[][2] = {{1, 1}, {1, s.batch}, {s.components, 1}};
  for (const auto& op : kBinary)
    for (const auto& [components, batch] : shapes) {
      SCOPED_TRACE(cat(op.name, ", second input of ", components, " components, batch ", batch));
      expect_same(
          pair,
          {output(pair.ring(), rng, s, Domain::eval, op.reads_output),
           random_poly(pair.ring(), rng, s.shape(), s.limbs(), Domain::eval, s.pad),
           random_poly(pair.ring(), rng, {s.log_n, components, batch}, s.limbs(), Domain::eval,
                       s.pad)},
          1, [&](Ctx& c, const V& v) { (c.kernels.get()->*op.op)(*c.stream, v[0], v[1], v[2]); });
    }
}

TEST_P(Arithmetic, SpecialValues) {
  Rng rng = test_rng();
  const ShapeCase s = kArithmeticShapes[2];
  auto pair = make_pair(device_, s.log_n, mixed_primes(s.log_n, kArithmeticPrimes));
  for (const auto& op : kBinary)
    for (const Fill x : kEveryFill)
      for (const Fill y : {Fill::zero, Fill::top}) {
        SCOPED_TRACE(cat(op.name, ": ", name_of(x), " and ", name_of(y)));
        auto out = output(pair.ring(), rng, s, Domain::eval, true);
        fill_canonical(out, pair.ring(), rng, x);
        expect_same(
            pair,
            {out, random_poly(pair.ring(), rng, s.shape(), s.limbs(), Domain::eval, {}, x),
             random_poly(pair.ring(), rng, s.shape(), s.limbs(), Domain::eval, {}, y)},
            1, [&](Ctx& c, const V& v) { (c.kernels.get()->*op.op)(*c.stream, v[0], v[1], v[2]); });
      }
}

TEST_P(Arithmetic, Negate) {
  Rng rng = test_rng();
  for (const auto& s : kArithmeticShapes) {
    SCOPED_TRACE(s.name);
    auto pair = make_pair(device_, s.log_n, mixed_primes(s.log_n, kArithmeticPrimes));
    for (const Fill fill : {Fill::random, Fill::zero, Fill::top, Fill::alternating}) {
      const auto a =
          random_poly(pair.ring(), rng, s.shape(), s.limbs(), Domain::coeff, s.pad, fill);
      const auto out = output(pair.ring(), rng, s, Domain::coeff, false);
      expect_same(pair, {out, a}, 1,
                  [](Ctx& c, const V& v) { c.kernels->neg(*c.stream, v[0], v[1]); });
      expect_same(pair, {a}, 1, [](Ctx& c, const V& v) { c.kernels->neg(*c.stream, v[0], v[0]); });
    }
  }
}

TEST_P(Arithmetic, Scalar) {
  Rng rng = test_rng();
  for (const auto& s : kArithmeticShapes) {
    auto pair = make_pair(device_, s.log_n, mixed_primes(s.log_n, kArithmeticPrimes));
    for (const auto& op : kScalar)
      for (const Fill fill : {Fill::random, Fill::zero, Fill::top}) {
        SCOPED_TRACE(cat(op.name, ", ", s.name, ", scalars ", name_of(fill)));
        const Domain d = fill == Fill::top ? Domain::coeff : Domain::eval;
        const auto scalars = filled_scalars(pair.ring(), rng, s.limbs(), fill);
        const auto out = output(pair.ring(), rng, s, d, op.reads_output);
        const auto a = random_poly(pair.ring(), rng, s.shape(), s.limbs(), d, s.pad);
        const auto call = [&](Ctx& c, auto to, auto from) {
          (c.kernels.get()->*op.op)(*c.stream, to, from, scalars);
        };
        expect_same(pair, {out, a}, 1, [&](Ctx& c, const V& v) { call(c, v[0], v[1]); });
        expect_same(pair, {a}, 1, [&](Ctx& c, const V& v) { call(c, v[0], v[0]); });
      }
  }
}

}  // namespace
}  // namespace crenel::test
