// LWE ciphertexts into the coefficients of one ciphertext of level 0 (docs/theory/bridge.md,
// "Packing"): most of the way in a ring of a few thousand coefficients.
#pragma once

#include "bridge/keys.h"
#include "ckks/monomial.h"
#include "device/torus/kernels.h"

namespace crenel::bridge {

/// Place of slot j among the coefficients that are a stride of N / (2 slots) apart: its bits
/// reversed.
u64 place_of(u64 j, u64 slots);

class Packing {
 public:
  /// Rows that are merged together: bounds what lies in memory between.
  static constexpr u64 kRowsAtOnce = 4096;

  /// Of `count` rows (a power of two, at most N/2) of a degree `dim`, modulo 2^log_modulus. Words
  /// are the same for every power of two `at_once`.
  Packing(std::shared_ptr<const Rings> rings, u64 count, u32 dim, u32 log_modulus,
          u64 at_once = kRowsAtOnce);

  const Rings& rings() const { return *rings_; }
  /// Ciphertexts of the middle ring that all rows fit into, those that lift to the last.
  u32 pieces() const { return pieces_; }
  u64 bytes() const;
  /// Row j's phase, times q0 / 2^log_modulus, as coefficient place_of(j) N / (2 count) of `out`, a
  /// ciphertext of level 0 of the CKKS ring, evaluation form, whose other coefficients mean
  /// nothing. OutOfMemoryError where there is no room.
  void operator()(device::Stream& stream, device::TorusKernels& torus, const Keys::Data& keys,
                  const u32* rows, rlwe::View out) const;

 private:
  /// What packing has of a ring: X^0, X^-1, ... for the members of a group, and by merge (1, X^k)
  /// and (1, -X^k).
  struct Stage {
    const rlwe::RingContext* ring = nullptr;
    u32 each = 1;        ///< members of a group
    MergeLevels levels;  ///< of merges that are needed
    std::unique_ptr<const ckks::MonomialGrid> members;
    std::vector<ckks::MonomialGrid> pairs;

    Stage(const rlwe::RingContext& r, u32 group, MergeLevels merges);
    /// Groups of a batch, under the ring before, under the ring's secret, and their members apart:
    /// member v of group h at v groups + h.
    rlwe::Poly apart(device::Stream& stream, const rlwe::Poly& groups,
                     const rlwe::SwitchKey& up) const;
    /// The halves of a batch into one, until `left` are left.
    rlwe::Poly merged(device::Stream& stream, rlwe::Poly a, u32 left, const MergeKeys& keys,
                      MergeLevels of_keys) const;
    u64 bytes() const;
  };

  /// Rows of the groups [first, first + count), lifted to the middle ring, under z(X^(n'/n)).
  rlwe::Poly lifted(device::Stream& stream, device::TorusKernels& torus, const u32* rows, u32 first,
                    u32 count) const;
  /// sum_v X^v piece_v(X^D), D the quotient of the degrees.
  void raised(device::Stream& stream, const rlwe::Poly& pieces, rlwe::View out) const;
  /// Polynomials of the middle ring by their values at powers of the last ring's roots.
  rlwe::Poly at_last_roots(device::Stream& stream, const rlwe::Poly& pieces) const;

  std::shared_ptr<const Rings> rings_;
  u64 count_;
  u32 dim_, log_modulus_;
  u32 pieces_, at_once_;  ///< pieces, and those that are merged together
  Stage middle_, last_;
  rlwe::Scalars factor_;
  std::vector<u64> roots_;  ///< by limb: t with psi^D = psi'^t, of the last and the middle ring
  device::Buffer rows_;     ///< [group][degree of the middle ring / dim]
  rlwe::Poly powers_;       ///< [X^v], of the last ring
};

}  // namespace crenel::bridge
