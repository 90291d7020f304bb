// linear_combination and automorphism_add with an addend: every override, and the default
// composition over the candidate's own primitives, against ref; and the definition of a linear
// combination.
#include "support/chains.h"
#include "support/compositions.h"
#include "support/devices.h"
#include "support/same.h"

namespace crenel::test {
namespace {

class Combination : public DeviceTest {};
CRENEL_POLY_SUITE(Combination);
class CombinationLaw : public DeviceTest {};
CRENEL_DEVICE_SUITE(CombinationLaw);

using K = device::PolyKernels;
using Ctx = Context;
using V = Views;
using ConstView = PolyView<const u32>;
using Scalars = device::LimbScalars;

const ShapeCase kCombinationShapes[] = {
    {"one limb", 10, 1, 1, 0, 1, {}},         {"odd window", 11, 2, 3, 2, 5, {2, 1, 0, 1}},
    {"three components", 12, 3, 1, 1, 7, {}}, {"many limbs", 10, 2, 1, 0, 26, {0, 0, 1, 0}},
    {"batch", 10, 1, 3, 3, 3, {1, 1, 1, 1}},  {"large ring", 15, 1, 1, 0, 3, {}},
    {"smallest ring", 3, 2, 1, 0, 3, {}},     {"largest ring", 17, 1, 1, 0, 1, {}}};
constexpr u32 kCombinationPrimes = 26;

std::vector<u64> primes_of(const ShapeCase& s) {
  return mixed_primes(std::max(s.log_n, 6u), kCombinationPrimes);
}

// Every third with different values for the halves.
Scalars real_or_complex_scalars(const ring::Ring& ring, Rng& rng, const LimbSet& limbs, Fill fill) {
  Scalars s;
  const bool complex = rng() % 3 == 0;
  for (u32 i = 0; i < limbs.size(); ++i) {
    const u32 q = ring.modulus(limbs[i]).q;
    fill_limb<u32>(&s.low[i], 1, q, fill, rng);
    s.high[i] = s.low[i];
    if (complex) fill_limb<u32>(&s.high[i], 1, q, fill, rng);
  }
  return s;
}

// `inputs` says which of the polynomials are combined; 0 is the output.
struct Terms {
  std::vector<std::size_t> inputs;
  bool constant;
};

void check(Pair& pair, Rng& rng, const ShapeCase& s, Domain domain, const Terms& terms,
           Fill fill = Fill::random) {
  SCOPED_TRACE(cat(s.name, ", ", terms.inputs.size(), " terms", terms.constant ? ", constant" : "",
                   ", ", name_of(fill)));
  std::vector<TestPoly> polys;
  std::vector<Scalars> scalars;
  const bool in_place = std::count(terms.inputs.begin(), terms.inputs.end(), 0) != 0;
  polys.push_back(garbage_poly(rng, s.shape(), s.limbs(), domain, s.pad));
  if (in_place) fill_canonical(polys[0], pair.ring(), rng, fill);
  const std::size_t last = *std::max_element(terms.inputs.begin(), terms.inputs.end());
  while (polys.size() <= last)
    polys.push_back(random_poly(pair.ring(), rng, s.shape(), s.limbs(), domain, s.pad, fill));
  for (std::size_t k = 0; k < terms.inputs.size(); ++k)
    scalars.push_back(real_or_complex_scalars(pair.ring(), rng, s.limbs(), fill));
  const Scalars constant = real_or_complex_scalars(pair.ring(), rng, s.limbs(), fill);
  const auto call = [&](bool composed) {
    return [&, composed](Ctx& c, const V& v) {
      std::vector<ConstView> in;
      for (const std::size_t k : terms.inputs) in.push_back(v[k]);
      const Scalars* added = terms.constant ? &constant : nullptr;
      if (composed)
        compositions(*c.kernels).linear_combination(*c.stream, v[0], in, scalars, added);
      else
        c.kernels->linear_combination(*c.stream, v[0], in, scalars, added);
    };
  };
  expect_all_same(pair, polys, 1, {{"override", call(false)}, {"default composition", call(true)}},
                  call(false));
}

std::vector<std::size_t> first_inputs(std::size_t count) {
  std::vector<std::size_t> inputs;
  for (std::size_t k = 0; k < count; ++k) inputs.push_back(k + 1);
  return inputs;
}

TEST_P(Combination, Shapes) {
  Rng rng = test_rng();
  for (const auto& s : kCombinationShapes) {
    auto pair = make_pair(device_, s.log_n, primes_of(s));
    for (const std::size_t terms : {1, 2, 5})
      check(pair, rng, s, terms % 2 ? Domain::eval : Domain::coeff,
            {first_inputs(terms), terms != 2});
  }
}

// So many that a backend takes several passes; the same input more than once.
TEST_P(Combination, ManyTerms) {
  Rng rng = test_rng();
  const ShapeCase s = kCombinationShapes[3];
  auto pair = make_pair(device_, s.log_n, primes_of(s));
  for (const std::size_t terms : {16, 17, 40, 90})
    for (const Fill fill : {Fill::random, Fill::top})
      check(pair, rng, s, Domain::eval, {first_inputs(terms), terms != 17}, fill);
  check(pair, rng, s, Domain::eval, {{1, 2, 1, 1}, true});
  for (const Fill fill : {Fill::zero, Fill::alternating, Fill::periodic})
    check(pair, rng, s, Domain::coeff, {first_inputs(3), true}, fill);
  // The worst case of the accumulators.
  auto largest = make_pair(device_, s.log_n, largest_primes(s.log_n, kCombinationPrimes));
  check(largest, rng, s, Domain::eval, {first_inputs(33), true}, Fill::top);
}

TEST_P(Combination, InPlace) {
  Rng rng = test_rng();
  const ShapeCase s = kCombinationShapes[1];
  auto pair = make_pair(device_, s.log_n, primes_of(s));
  check(pair, rng, s, Domain::eval, {{0}, true});
  check(pair, rng, s, Domain::eval, {{0, 1, 2}, false});
  check(pair, rng, s, Domain::eval, {{1, 2, 0}, true});
  check(pair, rng, s, Domain::eval, {{1, 0, 2, 0, 0}, true});
  // The output is the last of more terms than one pass has.
  auto inputs = first_inputs(50);
  inputs.push_back(0);
  check(pair, rng, s, Domain::coeff, {inputs, true}, Fill::top);
}

TEST_P(CombinationLaw, IsItsDefinition) {
  Rng rng = test_rng();
  auto context = make_context(device_, 9, mixed_primes(9, 5));
  const auto& ring = *context.ring;
  const LimbSet limbs = LimbSet::range(1, 4);
  const u64 n = 512;
  std::vector<TestPoly> polys;
  std::vector<Scalars> scalars;
  for (u32 k = 0; k < 7; ++k) {
    polys.push_back(random_poly(ring, rng, {9, 2, 2}, limbs, Domain::eval));
    scalars.push_back(real_or_complex_scalars(ring, rng, limbs, Fill::random));
  }
  // Terms 1..6 and the output itself; scalars[0] is the constant.
  const auto got = run_on(context, polys, [&](Ctx& c, const V& v) {
    std::vector<ConstView> in(v.begin() + 1, v.end());
    in[2] = v[0];
    c.kernels->linear_combination(*c.stream, v[0], in, std::span(scalars).subspan(1), &scalars[0]);
  })[0];
  for (u64 i = 0; i < got.size(); ++i) {
    const u32 l = static_cast<u32>(i / n % limbs.size());
    const auto scalar = [&](u32 k) {
      return i % n < n / 2 ? scalars[k].low[l] : scalars[k].high[l];
    };
    u128 sum = scalar(0);
    for (u32 k = 1; k < 7; ++k) sum += u128(scalar(k)) * polys[k == 3 ? 0 : k].words[i];
    ASSERT_EQ(got[i], static_cast<u32>(sum % ring.modulus(limbs[l]).q)) << "word " << i;
  }
}

TEST_P(Combination, AutomorphismAddend) {
  Rng rng = test_rng();
  for (const auto& s : kCombinationShapes) {
    auto pair = make_pair(device_, s.log_n, primes_of(s));
    const u64 two_n = u64(2) << s.log_n;
    for (const Domain d : {Domain::eval, Domain::coeff})
      for (u32 components = 1; components <= s.components; ++components)
        for (const u64 element : {u64(1), two_n - 1, rng() % two_n | 1}) {
          SCOPED_TRACE(cat(s.name, ", element ", element, ", addend of ", components));
          const Fill fill = element == 1 ? Fill::top : Fill::random;
          const auto input = [&](u32 count) {
            return random_poly(pair.ring(), rng, {s.log_n, count, s.batch}, s.limbs(), d, s.pad,
                               fill);
          };
          const std::vector<TestPoly> polys{input(s.components), input(s.components),
                                            input(components)};
          const auto call = [&](bool composed) {
            return [&, composed](Ctx& c, const V& v) {
              const ConstView addend = v[2];
              if (composed)
                compositions(*c.kernels).automorphism_add(*c.stream, v[0], v[1], element, &addend);
              else
                c.kernels->automorphism_add(*c.stream, v[0], v[1], element, &addend);
            };
          };
          expect_all_same(pair, polys, 1,
                          {{"override", call(false)}, {"default composition", call(true)}},
                          call(false));
        }
  }
}

// Adding first and turning the sum is the same.
TEST_P(CombinationLaw, AddendIsAddedBefore) {
  Rng rng = test_rng();
  auto context = make_context(device_, 10, mixed_primes(10, 5));
  const LimbSet limbs = LimbSet::range(0, 5);
  for (const Domain d : {Domain::eval, Domain::coeff}) {
    std::vector<TestPoly> polys;
    for (const u32 components : {2u, 2u, 1u})
      polys.push_back(random_poly(*context.ring, rng, {10, components, 3}, limbs, d));
    const auto fused = run_on(context, polys, [](Ctx& c, const V& v) {
      const ConstView addend = v[2];
      c.kernels->automorphism_add(*c.stream, v[0], v[1], 77, &addend);
    })[0];
    const auto stepwise = run_on(context, polys, [](Ctx& c, const V& v) {
      const auto first = v[1].components(0, 1);
      c.kernels->add(*c.stream, first, first, v[2]);
      c.kernels->automorphism_add(*c.stream, v[0], v[1], 77);
    })[0];
    EXPECT_TRUE(same_words(polys[0], fused, stepwise));
  }
}

}  // namespace
}  // namespace crenel::test
