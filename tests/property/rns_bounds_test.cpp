// Error bounds of base conversion, ModUp and division, against 128-bit integers.
#include "property/fixture.h"

namespace crenel::test {
namespace {

class RnsBounds : public PropertyTest {
 protected:
  i128 product(const LimbSet& limbs) const {
    i128 p = 1;
    for (u32 i = 0; i < limbs.size(); ++i) p *= ring().modulus(limbs[i]).q;
    return p;
  }
  u32 residue(i128 x, u32 id) const {
    const i128 q = ring().modulus(id).q;
    return static_cast<u32>((x % q + q) % q);
  }
};
CRENEL_DEVICE_SUITE(RnsBounds);

using C = Context;
using V = Views;

i128 random_below(Rng& rng, i128 bound) {
  return static_cast<i128>((u128(rng()) << 64 | rng()) % static_cast<u128>(bound));
}

// Coefficient k of every limb = integers[k].
TestPoly poly_of(const std::vector<i128>& integers, TestPoly p, const ring::Ring& ring) {
  auto v = p.host();
  for (u32 l = 0; l < v.limbs.size(); ++l) {
    const i128 q = ring.modulus(v.limbs[l]).q;
    for (u64 k = 0; k < v.ring_dim(); ++k)
      v.limb(0, 0, l)[k] = static_cast<u32>((integers[k] % q + q) % q);
  }
  return p;
}

// out = x + u D for ONE integer u a coefficient, |x + u D| <= #source D / 2.
TEST_P(RnsBounds, BaseConversionAddsFewMultiples) {
  EXPECT_TRUE(rc::check([this](u64 seed) {
    Rng rng(seed);
    const u32 sources = static_cast<u32>(1 + rng() % 4);
    const u32 first = static_cast<u32>(rng() % 3);
    const LimbSet source = LimbSet::range(first, first + sources);
    const LimbSet destination = LimbSet::range(0, 7).minus(source);
    const i128 d = product(source);
    std::vector<i128> x(two_n() / 2);
    for (auto& value : x) value = random_below(rng, d);
    const auto table = context_.kernels->prepare(
        rns::make_base_conversion(moduli_of(ring()), source, destination));
    const auto out =
        run({blank(destination, Domain::coeff), poly_of(x, blank(source, Domain::coeff), ring())},
            [&](C& c, const V& v) { c.kernels->base_convert(*c.stream, v[0], v[1], table); });
    const i128 most = d / 2 * sources + sources;
    for (u64 k = 0; k < x.size(); ++k) {
      bool found = false;
      for (i128 u = -i128(sources) / 2 - 1; u <= i128(sources) / 2 && !found; ++u) {
        const i128 value = x[k] + u * d;
        bool same = value <= most && -value <= most;
        for (u32 i = 0; same && i < destination.size(); ++i)
          same = out[i * x.size() + k] == residue(value, destination[i]);
        found = same;
      }
      RC_ASSERT(found);
    }
  }));
}

// y = (A x - r) / B with |r| <= (1/2 + 2^-15) B: the nearest integer to A x / B but for ties.
TEST_P(RnsBounds, DivisionRounds) {
  EXPECT_TRUE(rc::check([this](u64 seed) {
    Rng rng(seed);
    // Output primes 0 and 1 (62 bits together); prime 3 is added in half of the runs.
    const bool adds = rng() % 2;
    const u32 dropped_count = static_cast<u32>(1 + rng() % 3);
    LimbSet input = LimbSet::range(0, 2), output = LimbSet::range(0, 2), dropped, added;
    for (u32 i = 0; i < dropped_count; ++i) dropped.push_back(4 + i);
    if (adds) added.push_back(3);
    input = input.concat(dropped);
    output = output.concat(added);
    const i128 a = product(added), b = product(dropped);
    std::vector<i128> x(two_n() / 2);
    // Small enough that y is determined by its residues, and A x fits.
    const i128 bound = i128(1) << 100;
    for (auto& value : x)
      value = random_below(rng, std::min(bound, b << 28)) - std::min(bound, b << 28) / 2;
    const auto table =
        context_.kernels->prepare(rns::make_divide(moduli_of(ring()), input, output));
    const auto out =
        run({blank(output, Domain::coeff), poly_of(x, blank(input, Domain::coeff), ring())},
            [&](C& c, const V& v) {
              auto in = v[1], eval = v[0];
              in.domain = eval.domain = Domain::eval;
              c.kernels->ntt(*c.stream, in, v[1]);
              c.kernels->divide(*c.stream, eval, in, table);
              c.kernels->intt(*c.stream, v[0], eval);
            });
    const i128 q0 = ring().modulus(0).q, q1 = ring().modulus(1).q, q = q0 * q1;
    const i128 q0_inverse = math::inverse_mod<u32>(static_cast<u32>(q0 % q1), ring().modulus(1));
    for (u64 k = 0; k < x.size(); ++k) {
      const i128 r0 = out[k], r1 = out[x.size() + k];
      i128 y = r0 + q0 * (((r1 - r0) % q1 + q1) % q1 * q0_inverse % q1);
      if (y > q / 2) y -= q;
      const i128 error = a * x[k] - y * b;
      RC_ASSERT(2 * (error < 0 ? -error : error) <= b + (b >> 14));
      if (adds) RC_ASSERT(out[2 * x.size() + k] == residue(y, 3));
    }
  }));
}

// Each digit of ModUp is congruent to its own limbs' value modulo the digit, and small.
TEST_P(RnsBounds, ModUpDigitsRecombine) {
  EXPECT_TRUE(rc::check([this](u64 seed) {
    const LimbSet window = LimbSet::range(0, 5), special = LimbSet::range(5, 7);
    const LimbSet extended = window.concat(special);
    const auto table =
        context_.kernels->prepare(rns::make_mod_up(moduli_of(ring()), window, special, 2));
    RC_ASSERT(table->digits.size() == 3u);
    const auto in = random(seed, window, Domain::eval);
    auto out = empty_poly(shape(3), extended, Domain::eval);
    // Coefficient form of every digit, for comparison with the input's.
    const auto result = run_on(context_, {out, in}, [&](C& c, const V& v) {
      c.kernels->mod_up(*c.stream, v[0], v[1], table);
      auto digits = v[0], input = v[1];
      digits.domain = input.domain = Domain::coeff;
      c.kernels->intt(*c.stream, digits, v[0]);
      c.kernels->intt(*c.stream, input, v[1]);
    });
    out.words = result[0];
    const u64 n = two_n() / 2;
    for (u32 d = 0; d < 3; ++d) {
      const auto& digit = table->digits[d];
      const i128 modulus = product(digit.conversion.source);
      for (u64 k = 0; k < n; ++k) {
        for (u32 i = 0; i < digit.count; ++i)
          RC_ASSERT(out.host().limb(0, d, digit.first + i)[k] ==
                    result[1][(digit.first + i) * n + k]);
        // The value from the two special limbs: their 62 bits hold it when the digit is short.
        const i128 p0 = ring().modulus(5).q, p1 = ring().modulus(6).q, p = p0 * p1;
        const i128 inverse = math::inverse_mod<u32>(static_cast<u32>(p0 % p1), ring().modulus(6));
        const i128 r0 = out.host().limb(0, d, 5)[k], r1 = out.host().limb(0, d, 6)[k];
        i128 value = r0 + p0 * (((r1 - r0) % p1 + p1) % p1 * inverse % p1);
        if (value > p / 2) value -= p;
        if (modulus * digit.count > p) continue;  // not determined by these two limbs
        RC_ASSERT(2 * (value < 0 ? -value : value) <= modulus * digit.count);
        for (u32 i = 0; i < extended.size(); ++i)
          RC_ASSERT(out.host().limb(0, d, i)[k] == residue(value, extended[i]));
      }
    }
  }));
}

}  // namespace
}  // namespace crenel::test
