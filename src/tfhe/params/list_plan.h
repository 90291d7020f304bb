// The ring in which lists of messages are packed, and what that adds to them
// (docs/theory/tfhe.md, "Lists in a ring").
#pragma once

#include <vector>

#include "device/torus/plan.h"

namespace crenel::tfhe {

/// Ciphertexts (b, a) of the plan's ring modulo a product Q' of three primes, at most the modulus
/// of the bootstrapping key: what the ring's security is stated for.
struct ListPlan {
  std::vector<u64> primes;  ///< [p_d], ascending; empty where the plan has no lists
  u64 modulus = 0;          ///< [Q']
  u32 log_stored = 0;       ///< bits of a stored word
  u32 stored_modulus = 0;   ///< 2^log_stored - 1, odd as what is extracted from needs

  u32 digits() const { return static_cast<u32>(primes.size()); }
};

/// Of plans whose ciphertexts rest under one polynomial, one message each.
ListPlan list_plan(const device::TorusPlan& plan);

/// Words of the bodies of the key that packs: [doubling][digit][prime][N]; on the device it has
/// twice as many. Expects a plan with lists.
u64 list_key_words(const device::TorusPlan& plan);

/// Messages that `count` are packed as: the next power of two.
u64 list_width(u64 count);

/// Variances of what storage in a list of `count` messages adds to each, in units of q.
struct ListNoise {
  double packing = 0;   ///< key switches of the doublings, and the lift to Q'
  double rounding = 0;  ///< to stored words, and of these to words modulo q
  double sum() const { return packing + rounding; }
};
ListNoise list_noise(const device::TorusPlan& plan, const ListPlan& lists, u64 count);

}  // namespace crenel::tfhe
