// Key-switching keys and the public key: RLWE samples, no scheme.
#pragma once

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "rlwe/poly.h"

namespace crenel::rlwe {

/// Hybrid key-switching key (Han-Ki): one RLWE pair a gadget digit over all primes,
///   b_j = -a_j t + e_j + P * (1 on digit j's primes, 0 elsewhere) * s',
/// which takes a polynomial decrypted by s' to one decrypted by t. Truncation to the window of a
/// level is exact, so a key serves every level up to the one it was made for, with the digits and
/// primes that those levels use (RingContext::extent) and the words of the whole key.
struct SwitchKey {
  Poly pairs;            ///< [digit][b, a][prime][N], evaluation form
  random::Seed seed;     ///< expands every a_j: nonce {uniform, j}
  u32 first_digit = 0;   ///< of `pairs`
  u32 max_level = kAny;  ///< highest level that it serves
  u32 shared_by = 1;     ///< groups of parts of the device that have what they need of it

  static constexpr u32 kAny = ~u32{0};
  KeyView view() const {
    KeyView key(pairs.view(), first_digit);
    key.shared_by = shared_by;
    return key;
  }
};

/// Names a key of a set: a Galois element, which is odd, or one of the even numbers below.
using KeyId = u64;
inline constexpr KeyId kRelinearisation = 0, kDenseToSparse = 2, kSparseToDense = 4;
/// The element of the identity: no key is needed.
inline constexpr KeyId kNoKey = 1;
/// From the sparse secret to the dense one and through an automorphism (EncapsulationKeys::turned).
constexpr KeyId turned_key(u64 element) { return 8 * element; }
/// Beside the relinearisation or Galois key `id`: of the aligned levels (rlwe/key_levels.h).
inline constexpr KeyId kAlignedKey = KeyId{1} << 32;
constexpr KeyId aligned_key(KeyId id) { return kAlignedKey | id; }
constexpr bool is_aligned_key(KeyId id) { return id >= kAlignedKey; }
/// The key that it stands beside, or the key itself.
constexpr KeyId plain_key(KeyId id) { return id & (kAlignedKey - 1); }
constexpr bool is_turned(KeyId id) {
  return id % 8 == 0 && id != kRelinearisation && !is_aligned_key(id);
}
constexpr u64 turned_element(KeyId id) { return id / 8; }

/// RLWE sample of zero over every chain prime (any level's window is a part of it).
struct PublicKey {
  Poly pair;          ///< (b, a)
  random::Seed seed;  ///< expands a: nonce {uniform, 0}
};

/// Keys between the dense secret s and an ephemeral sparse one (rlwe/encapsulation.h): one RLWE
/// pair each, batch 1, without a gadget; all of one sparse secret.
struct EncapsulationKeys {
  /// Modulo q0 P' (encapsulation_limbs), under the sparse secret: carries P' s.
  SwitchKey dense_to_sparse;
  /// Modulo Q P (every prime), under s: carries P s_sparse.
  SwitchKey sparse_to_dense;
  /// By element, that of the identity included: modulo Q P, under element^-1(s): carries
  /// P / S s_sparse, S the product of the special primes that ModRaise may go beyond Q by
  /// (rlwe/encapsulation.h, "kOverPrimes").
  std::map<u64, SwitchKey> turned;
  u32 weight = 0;  ///< Hamming weight of the sparse secret
};

/// What a server gets: relinearisation key, one key a Galois element, some of both beside these
/// for the aligned levels, encapsulation.
struct EvaluationKeySet {
  std::optional<SwitchKey> relinearisation;
  std::map<u64, SwitchKey> galois;     ///< by element; the key decrypts under element^-1 (s)
  std::map<KeyId, SwitchKey> aligned;  ///< by plain_key()
  std::optional<EncapsulationKeys> encapsulation;

  /// Null when the set has no such key.
  const SwitchKey* find(KeyId id) const {
    if (id == kRelinearisation) return relinearisation ? &*relinearisation : nullptr;
    if (id == kDenseToSparse) return encapsulation ? &encapsulation->dense_to_sparse : nullptr;
    if (id == kSparseToDense) return encapsulation ? &encapsulation->sparse_to_dense : nullptr;
    if (is_turned(id)) {
      if (!encapsulation) return nullptr;
      const auto turned = encapsulation->turned.find(turned_element(id));
      return turned == encapsulation->turned.end() ? nullptr : &turned->second;
    }
    const auto& keys = is_aligned_key(id) ? aligned : galois;
    const auto it = keys.find(plain_key(id));
    return it == keys.end() ? nullptr : &it->second;
  }
  std::optional<u32> max_level(KeyId id) const {
    const SwitchKey* key = find(id);
    return key == nullptr ? std::nullopt : std::optional(key->max_level);
  }
  std::vector<KeyId> ids() const {
    std::vector<KeyId> all;
    if (relinearisation) all.push_back(kRelinearisation);
    for (const auto& [element, key] : galois) all.push_back(element);
    for (const auto& [id, key] : aligned) all.push_back(aligned_key(id));
    if (!encapsulation) return all;
    all.insert(all.end(), {kDenseToSparse, kSparseToDense});
    for (const auto& [element, key] : encapsulation->turned) all.push_back(turned_key(element));
    return all;
  }
  /// Any but those of encapsulation.
  void put(KeyId id, SwitchKey key) {
    if (id == kRelinearisation)
      relinearisation = std::move(key);
    else
      (is_aligned_key(id) ? aligned : galois).emplace(plain_key(id), std::move(key));
  }
  /// visit(key) for every key, of encapsulation all.
  template <class Visitor>
  void for_each(Visitor visit) const {
    if (relinearisation) visit(*relinearisation);
    for (const auto& [element, key] : galois) visit(key);
    for (const auto& [id, key] : aligned) visit(key);
    if (!encapsulation) return;
    visit(encapsulation->dense_to_sparse);
    visit(encapsulation->sparse_to_dense);
    for (const auto& [element, key] : encapsulation->turned) visit(key);
  }
  /// Of every key once, however many parts of a device have it.
  u64 pair_bytes() const {
    u64 total = 0;
    for_each([&](const SwitchKey& key) { total += key.pairs.bytes(); });
    return total;
  }
};

}  // namespace crenel::rlwe
