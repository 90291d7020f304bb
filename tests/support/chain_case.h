// A window of a chain, as the operations of key switching see it.
#pragma once

#include "support/chains.h"
#include "support/poly.h"
#include "support/random.h"

namespace crenel::test {

struct ChainCase {
  const char* name;
  u32 log_n;
  Chain chain;
  u32 begin, end;  ///< the window of the level
  u32 batch;
  Padding pad;

  LimbSet window() const { return LimbSet::range(begin, end); }
  LimbSet special() const {
    return LimbSet::range(chain.q_count, chain.q_count + chain.special_count);
  }
  LimbSet extended() const { return window().concat(special()); }
  /// The first digit that the window touches, and how many it does.
  u32 first_digit() const { return begin / chain.alpha; }
  u32 digits() const { return (end - 1) / chain.alpha + 1 - first_digit(); }
  PolyShape shape(u32 components) const { return {log_n, components, batch}; }
};

/// Any window of any chain, of up to three entries.
inline ChainCase drawn_case(Rng& rng) {
  const u32 alpha = 1 + u32(rng() % 4), main = 5 + u32(rng() % 8);
  ChainCase s{"drawn", 6 + u32(rng() % 3), toy_chain(2, main, alpha), 0, 0, 1 + u32(rng() % 3), {}};
  s.begin = u32(rng() % 4);
  s.end = s.begin + 1 + u32(rng() % (s.chain.q_count - s.begin));
  return s;
}

/// A switching key of the whole chain.
inline TestPoly switching_key(const ring::Ring& ring, Rng& rng, const ChainCase& s) {
  return random_poly(ring, rng, {s.log_n, 2, s.chain.digits()},
                     LimbSet::range(0, ring.prime_count()), Domain::eval);
}

}  // namespace crenel::test
