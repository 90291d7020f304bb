// Grids of plaintexts for the tests of their sums.
#pragma once

#include "support/chains.h"
#include "support/devices.h"
#include "support/same.h"

namespace crenel::test {

/// A grid of plaintexts: its words are a polynomial of 2^log_words coefficients, a component a baby
/// step and a batch entry a giant step.
struct GridCase {
  u32 giants, babies, log_words;
  std::vector<u8> present;

  device::PlainGrid at(const PolyView<u32>& words) const {
    return {words.data, words.limbs, log_words, giants, babies, present.data()};
  }
  TestPoly words(const ring::Ring& ring, Rng& rng, const LimbSet& limbs,
                 Fill fill = Fill::random) const {
    return random_poly(ring, rng, {log_words, babies, giants}, limbs, Domain::eval, {}, fill);
  }
};

enum class Presence { all, some, empty_row, empty_column, none };

inline GridCase grid_case(Rng& rng, u32 giants, u32 babies, u32 log_words, Presence presence) {
  GridCase grid{giants, babies, log_words, std::vector<u8>(u64(giants) * babies, 1)};
  for (u32 g = 0; g < giants; ++g)
    for (u32 b = 0; b < babies; ++b) {
      u8& present = grid.present[u64(g) * babies + b];
      if (presence == Presence::none || (presence == Presence::some && rng() % 3 == 0) ||
          (presence == Presence::empty_row && g == giants / 2) ||
          (presence == Presence::empty_column && b == babies / 2))
        present = 0;
    }
  return grid;
}

inline std::vector<PolyView<u32>> taken(const Views& views, std::size_t first, std::size_t count) {
  return {views.begin() + static_cast<std::ptrdiff_t>(first),
          views.begin() + static_cast<std::ptrdiff_t>(first + count)};
}
inline std::vector<PolyView<const u32>> read_only(const Views& views) {
  return {views.begin(), views.end()};
}

// out[g] by its definition, in 128-bit integers on the host.
inline std::vector<u32> defined_sum(const ring::Ring& ring, const GridCase& grid,
                                    const TestPoly& words, u32 g,
                                    const std::vector<std::vector<u32>>& in,
                                    const PolyView<u32>& shape) {
  std::vector<u32> out(shape.words());
  const u64 n = shape.ring_dim(), limbs = shape.limbs.size();
  for (u64 i = 0; i < out.size(); ++i) {
    const u64 l = i / n % limbs;
    const u64 at = (l << grid.log_words) + ((i % n) >> (shape.shape.log_n - grid.log_words));
    u128 sum = 0;
    for (u32 b = 0; b < grid.babies; ++b) {
      const u64 entry = u64(g) * grid.babies + b;
      if (grid.present[entry])
        sum += u128(words.words[entry * (limbs << grid.log_words) + at]) * in[b][i];
    }
    out[i] = static_cast<u32>(sum % ring.modulus(shape.limbs[static_cast<u32>(l)]).q);
  }
  return out;
}

}  // namespace crenel::test
