// Sums of plaintext products: every override, and the default composition over the candidate's own
// primitives, against ref; and their definition.
#include "conformance/plain_grid.h"
#include "support/compositions.h"

namespace crenel::test {
namespace {

class PlainSums : public DeviceTest {};
CRENEL_POLY_SUITE(PlainSums);
class PlainSumsLaw : public DeviceTest {};
CRENEL_DEVICE_SUITE(PlainSumsLaw);

using K = device::PolyKernels;
using Ctx = Context;
using V = Views;

// Outputs first, then the inputs, then the words of the grid.
void check_multiply(Pair& pair, Rng& rng, const PolyShape& shape, const LimbSet& limbs,
                    const GridCase& grid, Fill fill = Fill::random, Padding pad = {}) {
  SCOPED_TRACE(cat(grid.giants, " x ", grid.babies, " plaintexts of 2^", grid.log_words,
                   " words, N = 2^", shape.log_n, ", ", name_of(fill)));
  std::vector<TestPoly> polys;
  for (u32 g = 0; g < grid.giants; ++g)
    polys.push_back(garbage_poly(rng, shape, limbs, Domain::eval, pad));
  for (u32 b = 0; b < grid.babies; ++b)
    polys.push_back(random_poly(pair.ring(), rng, shape, limbs, Domain::eval, pad, fill));
  polys.push_back(grid.words(pair.ring(), rng, limbs, fill));
  const auto call = [&](bool composed) {
    return [&, composed](Ctx& c, const V& v) {
      const auto out = taken(v, 0, grid.giants);
      const auto in = read_only(taken(v, grid.giants, grid.babies));
      if (composed)
        compositions(*c.kernels).plain_multiply_sum(*c.stream, out, in, grid.at(v.back()));
      else
        c.kernels->plain_multiply_sum(*c.stream, out, in, grid.at(v.back()));
    };
  };
  expect_all_same(pair, polys, grid.giants,
                  {{"override", call(false)}, {"default composition", call(true)}}, call(false));
}

TEST_P(PlainSums, Multiply) {
  Rng rng = test_rng();
  auto pair = make_pair(device_, 10, mixed_primes(10, 9));
  const LimbSet limbs = LimbSet::range(1, 8);
  // 17 giant steps and 70 baby steps are more than any backend takes at a time.
  const u32 sizes[][2] = {{1, 1}, {3, 1}, {1, 5}, {4, 8}, {5, 3}, {9, 2}, {2, 70}, {17, 3}};
  for (const auto& [giants, babies] : sizes)
    for (const Presence presence : {Presence::all, Presence::some})
      check_multiply(pair, rng, {10, 2, 1}, limbs, grid_case(rng, giants, babies, 9, presence));
  for (u32 log_words = 0; log_words <= 10; ++log_words)
    check_multiply(pair, rng, {10, 2, 1}, limbs, grid_case(rng, 3, 4, log_words, Presence::some));
  for (const Presence presence : {Presence::empty_row, Presence::empty_column, Presence::none})
    check_multiply(pair, rng, {10, 2, 1}, limbs, grid_case(rng, 3, 4, 8, presence));
  for (const Fill fill : {Fill::zero, Fill::top, Fill::alternating})
    check_multiply(pair, rng, {10, 2, 1}, limbs, grid_case(rng, 3, 17, 10, Presence::all), fill);
  check_multiply(pair, rng, {10, 3, 3}, limbs, grid_case(rng, 2, 3, 5, Presence::some),
                 Fill::random, {1, 2, 1, 0});
  check_multiply(pair, rng, {10, 1, 3}, LimbSet::range(2, 3),
                 grid_case(rng, 5, 2, 1, Presence::all), Fill::random, {0, 1, 0, 1});
}

TEST_P(PlainSums, MultiplySizes) {
  Rng rng = test_rng();
  for (const u32 log_n : {3u, 4u, 6u, 12u, 13u, 15u}) {
    auto pair = make_pair(device_, log_n, mixed_primes(log_n < 6 ? 6 : log_n, 3));
    for (const u32 log_words : {1u, log_n - 2, log_n})
      check_multiply(pair, rng, {log_n, 2, 1}, LimbSet::range(0, 2),
                     grid_case(rng, 5, 3, log_words, Presence::some));
  }
  // Largest primes: the worst case of the accumulators.
  auto pair = make_pair(device_, 11, largest_primes(11, 3));
  check_multiply(pair, rng, {11, 2, 1}, LimbSet::range(0, 3),
                 grid_case(rng, 4, 19, 11, Presence::all), Fill::top);
}

TEST_P(PlainSumsLaw, IsItsDefinition) {
  Rng rng = test_rng();
  auto context = make_context(device_, 9, mixed_primes(9, 5));
  const LimbSet limbs = LimbSet::range(1, 4);
  for (u32 log_words = 0; log_words <= 9; ++log_words) {
    const auto grid = grid_case(rng, 3, 4, log_words, Presence::some);
    std::vector<TestPoly> polys;
    std::vector<std::vector<u32>> in;
    for (u32 i = 0; i < 7; ++i) {
      polys.push_back(random_poly(*context.ring, rng, {9, 2, 2}, limbs, Domain::eval));
      if (i >= 3) in.push_back(polys.back().words);
    }
    polys.push_back(grid.words(*context.ring, rng, limbs));
    const auto got = run_on(context, polys, [&](Ctx& c, const V& v) {
      c.kernels->plain_multiply_sum(*c.stream, taken(v, 0, 3), read_only(taken(v, 3, 4)),
                                    grid.at(v.back()));
    });
    for (u32 g = 0; g < 3; ++g)
      EXPECT_EQ(got[g], defined_sum(*context.ring, grid, polys.back(), g, in, polys[g].view))
          << "giant step " << g << ", 2^" << log_words << " words";
  }
}

}  // namespace
}  // namespace crenel::test
