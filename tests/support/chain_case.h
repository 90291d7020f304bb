// A window of a chain, as the operations of key switching see it.
#pragma once

#include "support/chains.h"
#include "support/poly.h"

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

}  // namespace crenel::test
