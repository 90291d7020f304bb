// Lists of messages in ciphertexts of the ring: its kernels and tables, and the key that packs.
#pragma once

#include "crenel/tfhe/evaluator.h"
#include "tfhe/objects.h"
#include "tfhe/params/list_plan.h"

namespace crenel::tfhe {

/// Made once a context. Polynomials have all primes as limbs.
struct ListRing {
  explicit ListRing(const Context::State& home);

  ListPlan plan;
  ring::LimbSet limbs;
  std::unique_ptr<device::PolyKernels> poly;
  device::Prepared<rns::ModUp> mod_up;  ///< a digit a prime
  device::Buffer monomials;             ///< X^(N/2), X^(N/4), ..., X: evaluation form

  u32 log_n() const { return poly->ring().log_n(); }
  /// Polynomials [batch][components], dense.
  ring::PolyView<u32> view(u32* data, u32 components, u32 batch, ring::Domain domain) const {
    return {data, {log_n(), components, batch}, limbs, domain};
  }
  u64 poly_bytes() const { return (u64(limbs.size()) << log_n()) * sizeof(u32); }
  /// Of the key: a switch for every doubling, of a digit a prime.
  u32 key_rows() const { return log_n() * plan.digits(); }
};

/// UnsupportedError for sets that have no lists.
void expect_lists(const Context::State& home);

/// Doubling l = 1, 2, ... takes a, of which X^(N / 2^(l - 1)) and its powers are left, with the
/// automorphism of this element.
constexpr u64 doubling_element(u32 l) { return (u64(1) << l) + 1; }

/// Into `data` (buffer, seed, bodies): row (l - 1) digits + d encrypts the secret as the
/// automorphism of doubling l takes it, times what is 1 modulo prime d and 0 modulo the others.
void make_list_key(const Context::State& home, SecretKeys& secret, EvaluationKeys::Data& data);
/// The key that data's seed and bodies state.
void load_list_key(const Context::State& home, EvaluationKeys::Data& data);

/// `count` rows at rest, at most N, packed: [2][prime][N] residues modulo the primes, b before a,
/// coefficient form, of a ciphertext whose coefficient j N / list_width(count) is message j's phase
/// times Q' / q. Host memory; waits for the device.
std::vector<u32> packed_rows(const Evaluator::State& s, const u32* rows, u64 count);

/// Bytes of a list of `count` messages: N masks and `count` bodies.
u64 stored_list_bytes(const Context::State& home, u64 count);
/// Bytes of an array, in lists of N messages and a last one of what is left.
u64 stored_lists_bytes(const Context::State& home, u64 size);

}  // namespace crenel::tfhe
