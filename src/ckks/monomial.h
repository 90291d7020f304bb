// Powers of X: as what ciphertexts are multiplied with, and what such a product's metadata are.
#pragma once

#include <map>
#include <memory>

#include "crenel/ckks/ciphertext.h"
#include "crenel/ckks/params.h"
#include "crenel/core/fork_mutex.h"
#include "rlwe/ring_context.h"

namespace crenel::ckks {

/// `power` in [0, 2N): X has order 2N.
u64 reduced_power(i64 power, u32 log_n);
/// Metadata of a product with X^power, `power` in [0, 2N): the polynomial of n slots has exponents
/// that N / 2n divides, and the result those that this and the power have in common.
Metadata monomial_metadata(Metadata a, u64 power, u32 log_n);

/// X^p for a grid of powers p in [0, 2N), in evaluation form on the device; stored once per period.
/// Made on the stream that contexts share, which it waits for: any stream may read it.
class MonomialGrid {
 public:
  /// Entry (g, b) is X^powers[g * babies + b].
  MonomialGrid(const rlwe::RingContext& ring, std::span<const u64> powers, u32 babies,
               const rlwe::LimbSet& limbs);
  /// Of limbs that lie one after the other in those of a grid of one entry; otherwise of all.
  device::PlainGrid grid(const rlwe::LimbSet& limbs) const;
  device::PlainGrid grid() const { return grid(limbs_); }
  u64 bytes() const { return words_.bytes(); }
  static u64 bytes_of(std::span<const u64> powers, u32 limbs, u32 log_n);

 private:
  rlwe::LimbSet limbs_;
  u32 log_words_ = 0, babies_ = 0;
  std::vector<u8> present_;
  device::Buffer words_;
};

/// The monomials that programs of one context multiplied with. They stay: recorded graphs read
/// them.
class Monomials {
 public:
  /// On all primes of the chain, for every level.
  const MonomialGrid& get(const rlwe::RingContext& ring, u64 power);

 private:
  ForkMutex mutex_;
  std::map<u64, std::unique_ptr<const MonomialGrid>> made_;
};

}  // namespace crenel::ckks
