// Key-switching keys and the public key: RLWE samples, no scheme.
#pragma once

#include <map>
#include <optional>

#include "rlwe/poly.h"

namespace crenel::rlwe {

/// Hybrid key-switching key (Han-Ki): one RLWE pair a gadget digit over all primes,
///   b_j = -a_j t + e_j + P * (1 on digit j's primes, 0 elsewhere) * s',
/// which takes a polynomial decrypted by s' to one decrypted by t. Truncation to the window of a
/// level is exact, so one key serves every level.
struct SwitchKey {
  Poly pairs;         ///< [digit][b, a][every prime][N], evaluation form
  random::Seed seed;  ///< expands every a_j: nonce {uniform, j}
};

/// RLWE sample of zero over every chain prime (any level's window is a part of it).
struct PublicKey {
  Poly pair;          ///< (b, a)
  random::Seed seed;  ///< expands a: nonce {uniform, 0}
};

/// Keys between the dense secret s and an ephemeral sparse one (rlwe/encapsulation.h): one RLWE
/// pair each, batch 1, without a gadget.
struct EncapsulationKeys {
  /// Modulo q0 P' (encapsulation_limbs), under the sparse secret: carries P' s.
  SwitchKey dense_to_sparse;
  /// Modulo Q P (every prime), under s: carries P s_sparse.
  SwitchKey sparse_to_dense;
  u32 weight = 0;  ///< Hamming weight of the sparse secret
};

/// What a server gets: relinearisation key, one key a Galois element, encapsulation.
struct EvaluationKeySet {
  std::optional<SwitchKey> relinearisation;
  std::map<u64, SwitchKey> galois;  ///< by element; the key decrypts under element^-1 (s)
  std::optional<EncapsulationKeys> encapsulation;

  /// visit(key) for every key, of encapsulation both.
  template <class Visitor>
  void for_each(Visitor visit) const {
    if (relinearisation) visit(*relinearisation);
    for (const auto& [element, key] : galois) visit(key);
    if (!encapsulation) return;
    visit(encapsulation->dense_to_sparse);
    visit(encapsulation->sparse_to_dense);
  }
};

}  // namespace crenel::rlwe
