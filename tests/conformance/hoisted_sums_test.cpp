// Hoisted sums of plaintext products: every override, and the default composition over the
// candidate's own primitives, against ref; and the baby steps one by one.
#include "conformance/plain_grid.h"
#include "support/chain_case.h"
#include "support/compositions.h"

namespace crenel::test {
namespace {

class HoistedSums : public DeviceTest {};
CRENEL_POLY_SUITE(HoistedSums);
class HoistedSumsLaw : public DeviceTest {};
CRENEL_DEVICE_SUITE(HoistedSumsLaw);

using K = device::PolyKernels;
using Ctx = Context;
using V = Views;
using ConstView = PolyView<const u32>;

// One digit to eleven; windows that start in a later digit.
std::vector<ChainCase> hoisted_cases() {
  return {{"cut digits", 10, toy_chain(4, 20, 6), 3, 22, 1, {2, 0, 0, 1}},
          {"later digits", 11, toy_chain(2, 9, 3), 4, 11, 3, {1, 2, 1, 0}},
          {"many digits", 10, toy_chain(1, 10, 1), 0, 11, 1, {}},
          {"one digit", 12, toy_chain(1, 4, 5), 0, 5, 2, {}},
          {"one limb", 6, toy_chain(2, 7, 2), 1, 2, 3, {}},
          {"tiny ring", 3, toy_chain(2, 4, 2), 0, 5, 1, {}}};
}

device::LimbScalars random_special(const ring::Ring& ring, Rng& rng, const LimbSet& window) {
  device::LimbScalars special;
  for (u32 i = 0; i < window.size(); ++i)
    special.low[i] = special.high[i] = static_cast<u32>(rng() % ring.modulus(window[i]).q);
  return special;
}

// digits, b, a and two switching keys, behind `outputs` outputs.
std::vector<TestPoly> hoisted_polys(const ring::Ring& ring, Rng& rng, const ChainCase& s,
                                    u32 outputs, Fill fill) {
  std::vector<TestPoly> polys;
  for (u32 g = 0; g < outputs; ++g)
    polys.push_back(garbage_poly(rng, s.shape(2), s.extended(), Domain::eval, s.pad));
  const auto add = [&](const PolyShape& shape, const LimbSet& limbs, Padding pad) {
    polys.push_back(random_poly(ring, rng, shape, limbs, Domain::eval, pad, fill));
  };
  add(s.shape(s.digits()), s.extended(), s.pad);
  add(s.shape(1), s.window(), s.pad);
  add(s.shape(1), s.window(), s.pad);
  for (u32 k = 0; k < 2; ++k)
    add({s.log_n, 2, s.chain.digits()}, LimbSet::range(0, ring.prime_count()), {});
  return polys;
}

// Alternates between the two keys; an element 1 has none, unless all are keyed.
std::vector<device::KeyView> keys_of(const V& v, u32 outputs, const std::vector<u64>& elements,
                                     bool all_keyed = false) {
  std::vector<device::KeyView> keys;
  for (std::size_t r = 0; r < elements.size(); ++r) {
    const bool keyed = all_keyed || elements[r] != 1;
    keys.push_back(keyed ? v[outputs + 3 + r % 2] : device::KeyView());
  }
  return keys;
}

void check_hoisted(Pair& pair, Rng& rng, const ChainCase& s, const std::vector<u64>& elements,
                   const GridCase& grid, Fill fill = Fill::random, bool all_keyed = false) {
  SCOPED_TRACE(cat(s.name, ": ", grid.giants, " x ", grid.babies, " plaintexts of 2^",
                   grid.log_words, " words, ", name_of(fill), all_keyed ? ", no a" : ""));
  const auto special = random_special(pair.ring(), rng, s.window());
  auto polys = hoisted_polys(pair.ring(), rng, s, grid.giants, fill);
  polys.push_back(grid.words(pair.ring(), rng, s.extended(), fill));
  const auto call = [&](bool composed) {
    return [&, composed](Ctx& c, const V& v) {
      const auto out = taken(v, 0, grid.giants);
      const auto keys = keys_of(v, grid.giants, elements, all_keyed);
      const std::size_t at = grid.giants;
      const ConstView a = all_keyed ? ConstView() : ConstView(v[at + 2]);
      if (composed)
        compositions(*c.kernels)
            .hoisted_plain_sums(*c.stream, out, v[at], v[at + 1], a, keys, elements,
                                grid.at(v.back()), special, s.first_digit());
      else
        c.kernels->hoisted_plain_sums(*c.stream, out, v[at], v[at + 1], a, keys, elements,
                                      grid.at(v.back()), special, s.first_digit());
    };
  };
  expect_all_same(pair, polys, grid.giants,
                  {{"override", call(false)}, {"default composition", call(true)}}, call(false));
}

// `count` odd elements: 1, conjugation, one that occurs twice, and random ones.
std::vector<u64> some_elements(Rng& rng, u32 log_n, u32 count) {
  const u64 two_n = u64(2) << log_n;
  std::vector<u64> elements{5 % two_n, 1, two_n - 1, 5 % two_n};
  while (elements.size() < count) elements.push_back(rng() % two_n | 1);
  elements.resize(count);
  return elements;
}

TEST_P(HoistedSums, Chains) {
  Rng rng = test_rng();
  const u32 sizes[][2] = {{1, 1}, {2, 3}, {4, 8}, {9, 4}};
  for (const auto& s : hoisted_cases()) {
    auto pair = make_pair(device_, s.log_n, s.chain.primes);
    for (const auto& [giants, babies] : sizes) {
      const u32 log_words = 1 + static_cast<u32>(rng() % s.log_n);
      check_hoisted(pair, rng, s, some_elements(rng, s.log_n, babies),
                    grid_case(rng, giants, babies, log_words, Presence::some));
    }
    check_hoisted(pair, rng, s, {1}, grid_case(rng, 2, 1, s.log_n, Presence::all));
    // Without an `a` elements 1 are rotations by nothing, with a key each.
    check_hoisted(pair, rng, s, {1}, grid_case(rng, 2, 1, s.log_n, Presence::all), Fill::random,
                  true);
    check_hoisted(pair, rng, s, some_elements(rng, s.log_n, 5),
                  grid_case(rng, 1, 5, s.log_n, Presence::some), Fill::random, true);
    for (const Fill fill : {Fill::top, Fill::zero})
      check_hoisted(pair, rng, s, some_elements(rng, s.log_n, 4),
                    grid_case(rng, 3, 4, s.log_n, Presence::all), fill);
  }
}

TEST_P(HoistedSums, Shapes) {
  Rng rng = test_rng();
  const ChainCase s = hoisted_cases()[0];
  auto pair = make_pair(device_, s.log_n, s.chain.primes);
  for (u32 log_words = 0; log_words <= s.log_n; ++log_words)
    check_hoisted(pair, rng, s, some_elements(rng, s.log_n, 3),
                  grid_case(rng, 2, 3, log_words, Presence::some));
  for (const Presence presence : {Presence::empty_row, Presence::empty_column, Presence::none})
    check_hoisted(pair, rng, s, some_elements(rng, s.log_n, 5),
                  grid_case(rng, 3, 5, s.log_n - 1, presence));
  // More baby steps and giant steps than a backend takes at a time.
  check_hoisted(pair, rng, s, some_elements(rng, s.log_n, 70),
                grid_case(rng, 2, 70, s.log_n - 1, Presence::some));
  check_hoisted(pair, rng, s, some_elements(rng, s.log_n, 3),
                grid_case(rng, 19, 3, s.log_n - 1, Presence::all));
  check_hoisted(pair, rng, s, {}, grid_case(rng, 2, 0, s.log_n, Presence::all));
  // Primes just below 2^31 and eight digits, all q - 1: the worst case of the accumulators.
  Chain chain;
  chain.primes = largest_primes(10, 9);
  chain.q_count = 8, chain.special_count = 1, chain.alpha = 1;
  const ChainCase worst{"largest primes", 10, chain, 0, 8, 1, {}};
  auto largest = make_pair(device_, 10, chain.primes);
  check_hoisted(largest, rng, worst, some_elements(rng, 10, 9),
                grid_case(rng, 8, 9, 10, Presence::all), Fill::top);
}

// Batches of two to six, whose keys may be read once for several; rotations by multiples of a
// stride, as baby steps have them, and by none.
TEST_P(HoistedSums, Batches) {
  Rng rng = test_rng();
  constexpr u32 kLogN = 11;
  const Chain chain = toy_chain(1, 5, 1);
  auto pair = make_pair(device_, kLogN, chain.primes);
  for (const u32 giants : {1, 2, 4, 5})
    for (u32 batch = 2; batch <= 6; ++batch) {
      const u32 digits = giants == 1 && batch % 2 == 0 ? 1 : 1 + static_cast<u32>(rng() % 6);
      const u32 steps = 3 + static_cast<u32>(rng() % 4), log_stride = static_cast<u32>(rng() % 5);
      const ChainCase s{"batch", kLogN, chain, 0, digits, batch, {1, 0, 2, 0}};
      std::vector<u64> elements;
      for (u32 k = 0; k < steps; ++k)
        elements.push_back(
            ring::galois_element_for_rotation(static_cast<i64>(k << log_stride), kLogN));
      SCOPED_TRACE(cat("batch of ", batch, ", ", digits, " digits, stride 2^", log_stride));
      const u32 log_words = rng() % 2 ? kLogN : kLogN - 1 - static_cast<u32>(rng() % 3);
      const auto grid = grid_case(rng, giants, steps, log_words, Presence::some);
      check_hoisted(pair, rng, s, elements, grid, rng() % 2 ? Fill::top : Fill::random,
                    rng() % 2 != 0);
    }
}

// Larger than ref can do in a test: override and default composition of the candidate itself.
TEST_P(HoistedSums, Large) {
  Rng rng = test_rng();
  const ChainCase s{"large", 15, toy_chain(4, 20, 6), 3, 24, 1, {}};
  auto context = make_context(device_, s.log_n, s.chain.primes);
  const auto elements = some_elements(rng, s.log_n, 8);
  const auto grid = grid_case(rng, 8, 8, s.log_n - 1, Presence::some);
  const auto special = random_special(*context.ring, rng, s.window());
  auto polys = hoisted_polys(*context.ring, rng, s, grid.giants, Fill::random);
  polys.push_back(grid.words(*context.ring, rng, s.extended()));
  const auto run = [&](bool composed) {
    return run_on(context, polys, [&, composed](Ctx& c, const V& v) {
      const auto out = taken(v, 0, 8);
      const auto keys = keys_of(v, 8, elements);
      if (composed)
        compositions(*c.kernels)
            .hoisted_plain_sums(*c.stream, out, v[8], v[9], v[10], keys, elements,
                                grid.at(v.back()), special, s.first_digit());
      else
        c.kernels->hoisted_plain_sums(*c.stream, out, v[8], v[9], v[10], keys, elements,
                                      grid.at(v.back()), special, s.first_digit());
    });
  };
  const auto fused = run(false), composed = run(true);
  for (u32 g = 0; g < grid.giants; ++g)
    EXPECT_TRUE(same_words(polys[g], fused[g], composed[g])) << "giant step " << g;
}

// The baby steps one by one with hoisted_rotate_sum, the sum on the host.
TEST_P(HoistedSumsLaw, IsStepByStep) {
  Rng rng = test_rng();
  for (const auto& s : hoisted_cases()) {
    SCOPED_TRACE(s.name);
    auto context = make_context(device_, s.log_n, s.chain.primes);
    const auto elements = some_elements(rng, s.log_n, 4);
    const auto grid = grid_case(rng, 2, 4, s.log_n - 1, Presence::some);
    const auto special = random_special(*context.ring, rng, s.window());
    ChainCase dense = s;
    dense.pad = {};
    auto polys = hoisted_polys(*context.ring, rng, dense, 2, Fill::random);
    polys.push_back(grid.words(*context.ring, rng, s.extended()));
    const auto got = run_on(context, polys, [&](Ctx& c, const V& v) {
      c.kernels->hoisted_plain_sums(*c.stream, taken(v, 0, 2), v[2], v[3], v[4],
                                    keys_of(v, 2, elements), elements, grid.at(v.back()), special,
                                    s.first_digit());
    });
    std::vector<std::vector<u32>> steps;
    for (u32 r = 0; r < 4; ++r)
      steps.push_back(run_on(context, polys, [&](Ctx& c, const V& v) {
        const auto keys = keys_of(v, 2, elements);
        c.kernels->hoisted_rotate_sum(*c.stream, v[0], v[2], v[3], v[4], std::span(&keys[r], 1),
                                      std::span(&elements[r], 1), special, s.first_digit());
      })[0]);
    for (u32 g = 0; g < 2; ++g)
      EXPECT_EQ(got[g], defined_sum(*context.ring, grid, polys.back(), g, steps, polys[g].view))
          << "giant step " << g;
  }
}

}  // namespace
}  // namespace crenel::test
