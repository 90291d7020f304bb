// A level of a chain on a candidate and on ref: tables, and random operands and keys.
#pragma once

#include "support/chain_case.h"
#include "support/same.h"
#include "support/scalars.h"

namespace crenel::test {

struct ChainLevel {
  ChainCase s;
  Pair pair;
  Rng& rng;
  struct Tables {
    device::Prepared<rns::ModUp> up;
    device::Prepared<rns::Divide> down;
  };
  Tables candidate, reference;

  ChainLevel(const std::shared_ptr<device::Device>& device, Rng& r, const ChainCase& of)
      : s(of), pair(make_pair(device, s.log_n, s.chain.primes)), rng(r) {
    const auto prepare = [&](Context& c) {
      const auto moduli = moduli_of(*c.ring);
      return Tables{
          c.kernels->prepare(rns::make_mod_up(moduli, s.window(), s.special(), s.chain.alpha)),
          c.kernels->prepare(rns::make_divide(moduli, s.extended(), s.window()))};
    };
    candidate = prepare(pair.candidate);
    reference = prepare(pair.reference);
  }
  std::string name() const {
    return cat("limbs ", s.begin, "..", s.end, " of ", s.chain.q_count, ", digits of ",
               s.chain.alpha, ", ring 2^", s.log_n, ", batch ", s.batch,
               "; repeat with CRENEL_SEED=", run_seed());
  }
  TestPoly poly(u32 components, const LimbSet& limbs) const {
    return random_poly(pair.ring(), rng, s.shape(components), limbs, Domain::eval);
  }
  /// Of the digits and limbs of the level.
  TestPoly key() const {
    return random_poly(pair.ring(), rng, {s.log_n, 2, s.digits()}, s.extended(), Domain::eval);
  }
  device::KeyView view(const PolyView<u32>& pairs) const { return {pairs, s.first_digit()}; }
  const Tables& tables(const Context& c) const {
    return &c == &pair.reference ? reference : candidate;
  }
  device::LimbScalars scalars(const LimbSet& limbs) const {
    return random_scalars(pair.ring(), rng, limbs, rng() % 8 != 0);
  }
};

}  // namespace crenel::test
