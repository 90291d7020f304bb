// Base conversion and reduction of signed integers against ref.
#include <algorithm>
#include <limits>

#include "support/chains.h"
#include "support/devices.h"
#include "support/same.h"

namespace crenel::test {
namespace {

class Basis : public DeviceTest {};
CRENEL_POLY_SUITE(Basis);
class BasisLaw : public DeviceTest {};
CRENEL_DEVICE_SUITE(BasisLaw);

using Ctx = Context;
using V = Views;

// Coefficients whose z_j = (x_j s_j + half_j) mod d_j is the largest value d_j - 1 for every j: the
// worst case of the accumulators.
void fill_largest_products(TestPoly& p, const ring::Ring& ring, const rns::BaseConversion& table) {
  auto v = p.host();
  for (u32 j = 0; j < v.limbs.size(); ++j) {
    const auto& d = ring.modulus(v.limbs[j]);
    const u32 scale_inverse = math::inverse_mod<u32>(table.source_scale[j].value, d);
    const u32 wanted = (d.q - 1) - table.half[j];
    const u32 x = static_cast<u32>(u64(wanted) * scale_inverse % d.q);
    for (u32 b = 0; b < v.shape.batch; ++b)
      for (u32 c = 0; c < v.shape.components; ++c)
        for (u64 k = 0; k < v.ring_dim(); ++k) v.limb(b, c, j)[k] = x;
  }
}

void check_one(Pair& pair, Rng& rng, PolyShape shape, const rns::BaseConversion& table,
               Padding pad) {
  const LimbSet &source = table.source, &destination = table.destination;
  SCOPED_TRACE(cat(source.size(), " to ", destination.size(), " limbs, lazy terms ",
                   table.lazy_terms, table.rounded() ? ", rounded" : ""));
  const auto in_candidate = pair.candidate.kernels->prepare(table);
  const auto in_reference = pair.reference.kernels->prepare(table);
  const auto convert = [](const auto& prepared) {
    return [&](Ctx& c, const V& v) { c.kernels->base_convert(*c.stream, v[0], v[1], prepared); };
  };
  const auto out = garbage_poly(rng, shape, destination, Domain::coeff, pad);
  for (const Fill fill : {Fill::random, Fill::zero, Fill::top}) {
    SCOPED_TRACE(name_of(fill));
    expect_same(pair, {out, random_poly(pair.ring(), rng, shape, source, Domain::coeff, pad, fill)},
                1, convert(in_candidate), convert(in_reference));
  }
  SCOPED_TRACE("largest products");
  auto worst = empty_poly(shape, source, Domain::coeff, pad);
  fill_largest_products(worst, pair.ring(), table);
  expect_same(pair, {out, worst}, 1, convert(in_candidate), convert(in_reference));
}

// With the quotient kept, as ModUp wants it, and rounded, as divisions do.
void check(Pair& pair, Rng& rng, PolyShape shape, const LimbSet& source, const LimbSet& destination,
           const LimbSet& factor = {}, Padding pad = {}) {
  for (const auto quotient : {rns::Quotient::kept, rns::Quotient::rounded})
    check_one(
        pair, rng, shape,
        rns::make_base_conversion(moduli_of(pair.ring()), source, destination, factor, quotient),
        pad);
}

TEST_P(Basis, ConvertChain) {
  Rng rng = test_rng();
  const Chain chain = toy_chain(4, 43, 12);
  auto pair = make_pair(device_, 10, chain.primes);
  const LimbSet special = LimbSet::range(47, 59);
  for (const u32 sources : {1u, 2u, 3u, 5u, 8u, 12u}) {
    check(pair, rng, {10, 1, 1}, LimbSet::range(47, 47 + sources), LimbSet::range(3, 20));
    check(pair, rng, {10, 1, 1}, LimbSet::range(4, 4 + sources), LimbSet::range(20, 21));
  }
  // Digit to the rest of a window and the special primes: the destination is not one run of ids.
  const LimbSet digit = LimbSet::range(12, 24);
  check(pair, rng, {10, 1, 3}, digit, LimbSet::range(2, 31).minus(digit).concat(special));
  check(pair, rng, {10, 1, 1}, LimbSet::range(2, 12), LimbSet::range(12, 47).concat(special));
  // The division's factor of added primes, and one source limb in the middle of a larger
  // polynomial.
  check(pair, rng, {10, 3, 1}, LimbSet::range(18, 20).concat(special), LimbSet::range(0, 18),
        LimbSet::range(0, 2), {1, 2, 1, 0});
  check(pair, rng, {10, 2, 3}, LimbSet::range(8, 9), LimbSet::range(30, 33), {}, {3, 1, 0, 1});
}

TEST_P(Basis, ConvertFewLazyTerms) {
  Rng rng = test_rng();
  std::vector<u64> primes = largest_primes(12, 24);
  for (const u64 p : mixed_primes(12, 16))
    if (p < (u64(1) << 30)) primes.push_back(p);
  auto pair = make_pair(device_, 12, primes);
  const u32 count = static_cast<u32>(primes.size());
  const auto moduli = moduli_of(pair.ring());
  u32 fewest = kTinyPrime;
  for (const u32 sources : {5u, 9u, 13u, 16u, 17u}) {
    const LimbSet source = LimbSet::range(0, sources), destination = LimbSet::range(17, count);
    fewest = std::min(fewest, rns::make_base_conversion(moduli, source, destination).lazy_terms);
    check(pair, rng, {12, 1, 1}, source, destination);
  }
  EXPECT_LT(fewest, 17u) << "the test means to need a reduction inside the sum";
}

// 62-bit products: the number of lazy terms is whatever we claim, so claim every smaller number
// too.
TEST_P(Basis, ConvertForcedLazyTerms) {
  Rng rng = test_rng();
  auto pair = make_pair(device_, 10, largest_primes(10, 20));
  const LimbSet source = LimbSet::range(0, 11), destination = LimbSet::range(11, 20);
  auto table = rns::make_base_conversion(moduli_of(pair.ring()), source, destination);
  const auto in_reference = pair.reference.kernels->prepare(table);
  const u32 most = table.lazy_terms;
  auto worst = empty_poly({10, 1, 1}, source, Domain::coeff);
  fill_largest_products(worst, pair.ring(), table);
  for (u32 terms = 1; terms <= most; ++terms) {
    SCOPED_TRACE(cat("lazy terms ", terms, " of ", most));
    table.lazy_terms = terms;
    const auto in_candidate = pair.candidate.kernels->prepare(table);
    for (const auto& in : {worst, random_poly(pair.ring(), rng, {10, 1, 1}, source, Domain::coeff)})
      expect_same(
          pair, {garbage_poly(rng, {10, 1, 1}, destination, Domain::coeff), in}, 1,
          [&](Ctx& c, const V& v) { c.kernels->base_convert(*c.stream, v[0], v[1], in_candidate); },
          [&](Ctx& c, const V& v) {
            c.kernels->base_convert(*c.stream, v[0], v[1], in_reference);
          });
  }
}

TEST_P(Basis, ConvertLargeRing) {
  Rng rng = test_rng();
  auto pair = make_pair(device_, 15, mixed_primes(15, 7));
  check(pair, rng, {15, 1, 1}, LimbSet::range(0, 4), LimbSet::range(4, 7));
}

TEST_P(Basis, ReduceSigned) {
  Rng rng = test_rng();
  const ShapeCase shapes[] = {{"dense", 10, 1, 1, 0, 1, {}},
                              {"window", 11, 2, 3, 2, 5, {1, 2, 0, 1}},
                              {"largest", 17, 1, 1, 0, 1, {}}};
  for (const auto& s : shapes) {
    SCOPED_TRACE(s.name);
    auto pair = make_pair(device_, s.log_n, mixed_primes(s.log_n, 8));
    std::vector<i64> values(u64(s.shape().polys()) << s.log_n);
    for (auto& x : values) x = static_cast<i64>(rng()) >> (rng() % 64);
    const i64 q = pair.ring().modulus(s.first_limb).q;
    const i64 edges[] = {std::numeric_limits<i64>::min(),
                         std::numeric_limits<i64>::max(),
                         0,
                         -1,
                         1,
                         q,
                         -q,
                         q - 1,
                         1 - q,
                         q * q,
                         -q * q};
    std::copy(std::begin(edges), std::end(edges), values.begin());
    expect_same(pair, {garbage_poly(rng, s.shape(), s.limbs(), Domain::coeff, s.pad)}, 1,
                [&](Ctx& c, const V& v) {
                  auto memory = c.stream->allocate(values.size() * sizeof(i64));
                  c.stream->copy_in(memory.data(), values.data(), values.size() * sizeof(i64));
                  c.kernels->reduce_signed(*c.stream, v[0], memory.as<i64>());
                });
  }
}

std::vector<i64> lifted(Ctx& c, const TestPoly& in) {
  std::vector<i64> values(u64(in.view.shape.polys()) << in.view.shape.log_n);
  run_on(c, {in}, [&](Ctx& context, const V& v) {
    const auto memory = context.stream->allocate(values.size() * sizeof(i64));
    context.kernels->lift_signed(*context.stream, memory.as<i64>(), v[0]);
    context.stream->synchronize();
    context.stream->copy_out(values.data(), memory.data(), values.size() * sizeof(i64));
  });
  return values;
}

TEST_P(Basis, LiftSigned) {
  Rng rng = test_rng();
  // Windows of mixed_primes: 31 and 30 bits, 30 and 25, 20 and 31 bits; one limb of each width.
  for (const auto& [first, count] :
       {std::pair{0u, 1u}, {1u, 1u}, {3u, 1u}, {0u, 2u}, {1u, 2u}, {3u, 2u}})
    for (const u32 log_n : {3u, 10u, 15u}) {
      SCOPED_TRACE(cat("limbs from ", first, ", ", count, ", N = 2^", log_n));
      auto pair = make_pair(device_, log_n, mixed_primes(std::max(log_n, 6u), 5));
      for (const Fill fill : kEveryFill) {
        const auto in =
            random_poly(pair.ring(), rng, {log_n, 2, 3}, LimbSet::range(first, first + count),
                        Domain::coeff, {1, 2, 0, 1}, fill);
        EXPECT_EQ(lifted(pair.candidate, in), lifted(pair.reference, in)) << name_of(fill);
      }
    }
}

// Chosen integers, their residues by division, and back: the extremes of (-D/2, D/2) and random
// ones.
TEST_P(BasisLaw, LiftInvertsReduction) {
  Rng rng = test_rng();
  auto context = make_context(device_, 10, mixed_primes(10, 8));
  const auto& ring = *context.ring;
  const std::vector<LimbSet> sets = [] {
    std::vector<LimbSet> all;
    for (u32 a = 0; a < 8; ++a) {
      all.push_back(LimbSet::range(a, a + 1));
      for (u32 b = 0; b < 8; ++b)
        if (b != a) all.push_back(LimbSet::range(a, a + 1).concat(LimbSet::range(b, b + 1)));
    }
    return all;
  }();
  for (const auto& limbs : sets) {
    i64 product = 1;
    for (u32 l = 0; l < limbs.size(); ++l) product *= ring.modulus(limbs[l]).q;
    if (product >= i64(1) << 62) continue;
    const i64 half = product / 2, q = ring.modulus(limbs[0]).q;
    std::vector<i64> values{0, 1, -1, half, -half, half - 1, 1 - half, q / 2, -(q / 2), q / 2 + 1};
    while (values.size() < 1024)
      values.push_back(static_cast<i64>(rng() % static_cast<u64>(product)) - half);
    for (i64& x : values) x = std::clamp(x, -half, half);
    auto in = empty_poly({10, 1, 1}, limbs, Domain::coeff);
    for (u32 l = 0; l < limbs.size(); ++l)
      for (u64 i = 0; i < 1024; ++i) {
        const i64 d = ring.modulus(limbs[l]).q, rest = values[i] % d;
        in.host().limb(0, 0, l)[i] = static_cast<u32>(rest < 0 ? rest + d : rest);
      }
    EXPECT_EQ(lifted(context, in), values) << "primes " << q << " and " << product / q;
  }
}

}  // namespace
}  // namespace crenel::test
